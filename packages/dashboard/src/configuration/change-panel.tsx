// An editor for a new configuration. The service only checks it: nothing is put in force.

import { useRef, useState } from 'preact/hooks'
import type {
  ConfigurationProblem,
  ConfigurationState,
  DiffLine,
} from '../../../server/src/admin/api-types.ts'
import { request } from '../api.ts'
import { Notice, Problem } from '../components/status.tsx'
import { useSession } from '../session.tsx'
import { Diff, Problems } from './findings.tsx'

interface Checked {
  readonly problems: readonly ConfigurationProblem[]
  readonly diff: readonly DiffLine[]
}

export function ChangePanel({ configuration }: { readonly configuration: ConfigurationState }) {
  const { may } = useSession()
  const [text, setText] = useState('')
  const [checked, setChecked] = useState<Checked>()
  const [error, setError] = useState<Error>()
  const [isBusy, setBusy] = useState(false)
  const area = useRef<HTMLTextAreaElement>(null)

  const write = (written: string): void => {
    setText(written)
    setChecked(undefined)
    setError(undefined)
  }
  const check = async (event: Event): Promise<void> => {
    event.preventDefault()
    setBusy(true)
    setError(undefined)
    try {
      setChecked(await request<Checked>('POST', '/v1/admin/configuration/check', { text }))
    } catch (failure) {
      setChecked(undefined)
      setError(failure as Error)
    }
    setBusy(false)
  }
  const go = ({ line, column }: ConfigurationProblem): void => {
    const at = placeIn(text, line, column)
    area.current?.focus()
    area.current?.setSelectionRange(at, at)
  }

  return (
    <section class="panel" aria-label="Try a change">
      <div class="panel-head">
        <h2>Try a change</h2>
        <span class="muted">It is only checked: nothing is put in force.</span>
      </div>
      {may('admin') ? (
        <form class="change" onSubmit={check}>
          <label>
            <span>A whole configuration, in YAML or JSON</span>
            <textarea
              ref={area}
              class="mono"
              rows={14}
              spellcheck={false}
              value={text}
              onInput={({ currentTarget }) => write(currentTarget.value)}
            />
          </label>
          <div class="actions">
            <button type="submit" class="primary" disabled={isBusy || text.trim() === ''}>
              Check it
            </button>
            <button type="button" onClick={() => write(configuration.inForce)}>
              Begin with what is in force
            </button>
            <span class="field-hint">
              Secrets are left out of that: the check complains where *** stands.
            </span>
          </div>
        </form>
      ) : (
        <p>It needs a token of the role admin.</p>
      )}
      {error !== undefined && <Problem error={error} />}
      <div role="status">{checked !== undefined && <Result checked={checked} onGo={go} />}</div>
    </section>
  )
}

function Result({
  checked: { problems, diff },
  onGo,
}: {
  readonly checked: Checked
  readonly onGo: (problem: ConfigurationProblem) => void
}) {
  if (problems.length > 0) {
    return (
      <Notice tone="warn">
        <p>It could not be put in force:</p>
        <Problems problems={problems} onGo={onGo} />
      </Notice>
    )
  }
  if (diff.length === 0) return <Notice tone="good">It is valid, and says what is in force.</Notice>
  return (
    <>
      <Notice tone="good">It is valid, and would change what is in force.</Notice>
      <Diff label="From what is in force to this text" lines={diff} />
    </>
  )
}

/** Where a line and a column, both from 1, are in a text; its end where it has no such line. */
function placeIn(text: string, line: number, column: number): number {
  let start = 0
  for (let at = 1; at < line; at++) {
    const end = text.indexOf('\n', start)
    if (end === -1) return text.length
    start = end + 1
  }
  const end = text.indexOf('\n', start)
  return Math.min(start + column - 1, end === -1 ? text.length : end)
}
