// The form for choosing a log and the fields of its lines.

import { useEffect, useState } from 'preact/hooks'
import { Notice } from '../components/status.tsx'
import { useUniqueId } from '../components/unique-id.ts'
import { count, duration, share, utc } from '../format.ts'
import { CapturedChoice } from './captured-choice.tsx'
import type { ReadOptions } from './log.ts'
import type { LogSummary } from './messages.ts'
import type { Simulator } from './use-simulator.ts'

/** A log and its name. */
interface Source {
  readonly name: string
  readonly file: Blob | 'sample'
}

const ACCESS_LOG_KEYS = ['ip', 'user', 'method', 'path', 'status']

const USUAL: ReadOptions = { format: 'auto', key: 'ip', timeField: 'time' }

/** The format of captured requests. */
const CAPTURED: ReadOptions = { format: 'auto', key: 'key', timeField: 'time' }

export function LogPanel({ simulator }: { readonly simulator: Simulator }) {
  const { loading, log, problem, load } = simulator
  const [source, setSource] = useState<Source>()
  const [options, setOptions] = useState(USUAL)
  const [isOver, setOver] = useState(false)

  const open = (chosen: Source, how: ReadOptions): void => {
    setSource(chosen)
    setOptions(how)
    load({ source: chosen.file, options: how })
  }
  const openFile = (file: File | null | undefined): void => {
    if (file) open({ name: file.name, file }, { ...options, limiter: undefined })
  }
  const readAs = (how: ReadOptions): void => {
    setOptions(how)
    if (source !== undefined) load({ source: source.file, options: how })
  }

  return (
    <section
      class={`panel log-panel${isOver ? ' is-over' : ''}`}
      aria-label="Log"
      onDragOver={(event) => {
        event.preventDefault()
        setOver(true)
      }}
      onDragLeave={() => setOver(false)}
      onDrop={(event) => {
        event.preventDefault()
        setOver(false)
        openFile(event.dataTransfer?.files[0])
      }}
    >
      <div class="panel-head">
        <h2>Log</h2>
        <span class="muted">The log stays in this browser.</span>
      </div>
      <div class="log-sources">
        <label>
          <span>Choose or drop an access log or JSON lines, plain or gzipped</span>
          <input
            type="file"
            onChange={({ currentTarget }) => {
              openFile(currentTarget.files?.[0])
              // Lets the user choose the same file again after it has changed.
              currentTarget.value = ''
            }}
          />
        </label>
        <button type="button" onClick={() => open({ name: 'the sample', file: 'sample' }, USUAL)}>
          Load the sample
        </button>
        <CapturedChoice onChoose={(name, file) => open({ name, file }, CAPTURED)} />
      </div>
      <LineChoice options={options} fields={log?.fields ?? []} onChange={readAs} />
      {loading !== undefined && (
        <div>
          <progress value={loading.share} aria-label="Reading the log" />{' '}
          <span class="muted">{count(loading.lines)} lines read</span>
        </div>
      )}
      {problem !== undefined && log === undefined && (
        <Notice tone="bad">
          <p>
            Can’t read {source?.name ?? 'the log'}: {problem}.
          </p>
        </Notice>
      )}
      {log !== undefined && source !== undefined && (
        <>
          <Summary name={source.name} log={log} />
          {log.limiters.length > 1 && (
            <label>
              <span>The log has requests for several limiters. Show</span>
              <select
                value={log.limiter}
                onChange={({ currentTarget }) => readAs({ ...options, limiter: currentTarget.value })}
              >
                {log.limiters.map((name) => (
                  <option key={name}>{name}</option>
                ))}
              </select>
            </label>
          )}
        </>
      )}
    </section>
  )
}

/** The fields of a line that contain the caller, the time and the cost. */
function LineChoice({
  options,
  fields,
  onChange,
}: {
  readonly options: ReadOptions
  readonly fields: readonly string[]
  readonly onChange: (options: ReadOptions) => void
}) {
  const keys = useUniqueId()
  const names = useUniqueId()
  return (
    <details>
      <summary>Line format</summary>
      <div class="line-choice">
        <FieldChoice
          label="Count by"
          hint={`${ACCESS_LOG_KEYS.join(', ')}, or a field in the JSON lines, such as client.ip`}
          list={keys}
          value={options.key}
          onChange={(key) => onChange({ ...options, key })}
        />
        <FieldChoice
          label="Time field"
          hint="In JSON lines: ISO 8601, epoch seconds or epoch milliseconds"
          list={names}
          value={options.timeField}
          onChange={(timeField) => onChange({ ...options, timeField })}
        />
        <FieldChoice
          label="Cost field"
          hint="In JSON lines. Default: 1, or the cost of a captured request"
          list={names}
          value={options.costField ?? ''}
          onChange={(costField) => onChange({ ...options, costField: costField || undefined })}
        />
      </div>
      <datalist id={keys}>
        {[...ACCESS_LOG_KEYS, ...fields].map((name) => (
          <option key={name} value={name} />
        ))}
      </datalist>
      <datalist id={names}>
        {fields.map((name) => (
          <option key={name} value={name} />
        ))}
      </datalist>
    </details>
  )
}

/** A text field. When the user leaves it, the new value applies and the log is read again. */
function FieldChoice({
  label,
  hint,
  list,
  value,
  onChange,
}: {
  readonly label: string
  readonly hint: string
  readonly list: string
  readonly value: string
  readonly onChange: (value: string) => void
}) {
  const [draft, setDraft] = useState(value)
  useEffect(() => setDraft(value), [value])
  return (
    <label>
      <span>{label}</span>
      <input
        list={list}
        value={draft}
        onInput={({ currentTarget }) => setDraft(currentTarget.value)}
        onChange={({ currentTarget }) => onChange(currentTarget.value.trim())}
      />
      <span class="field-hint">{hint}</span>
    </label>
  )
}

function Summary({ name, log }: { readonly name: string; readonly log: LogSummary }) {
  const { requests, callers, fromMs, toMs, lines, skipped, isCut, releasedEarly } = log
  if (requests === 0) {
    return (
      <Notice tone="bad">
        <p>
          {lines === 0 ? `${name} is empty.` : `None of the ${count(lines)} lines in ${name} is a request.`}
        </p>
        <SkippedLines log={log} />
      </Notice>
    )
  }
  return (
    <>
      <p data-requests={requests}>
        <strong class="mono">{name}</strong>: {count(requests)} requests from {count(callers)} callers,{' '}
        {utc(fromMs)} to {utc(toMs)} UTC ({duration(toMs - fromMs)}).
      </p>
      {isCut && (
        <Notice tone="warn">
          <p>
            Only the first {count(lines)} lines were read. Use <code>slidegate replay</code> to read them all.
          </p>
        </Notice>
      )}
      {releasedEarly > 0 && (
        <Notice tone="warn">
          <p>
            {count(releasedEarly)} requests may be simulated in the wrong order, because lines of the log are
            too far out of order.
          </p>
        </Notice>
      )}
      {skipped > 0 && (
        <details>
          <summary>
            {count(skipped)} of {count(lines)} lines were skipped ({share(skipped / lines)})
          </summary>
          <SkippedLines log={log} />
        </details>
      )}
    </>
  )
}

function SkippedLines({ log: { reasons, badLines } }: { readonly log: LogSummary }) {
  return (
    <div class="skipped">
      <ul>
        {reasons.map(([reason, lines]) => (
          <li key={reason}>
            {count(lines)}: {reason}
          </li>
        ))}
      </ul>
      {badLines.length > 0 && <p>The first skipped lines:</p>}
      <ul>
        {badLines.map(({ line, reason, text }) => (
          <li key={line}>
            line {count(line)}, {reason}: <code>{text}</code>
          </li>
        ))}
      </ul>
    </div>
  )
}
