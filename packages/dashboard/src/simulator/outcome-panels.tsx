// Results of a simulation: the kinds compared, each kind, and limits that would fit.

import { useState } from 'preact/hooks'
import { formatDuration } from '../../../replay/src/text.ts'
import { Notice } from '../components/status.tsx'
import { type Column, Table } from '../components/table.tsx'
import { count, ratio, share, utc } from '../format.ts'
import { KIND_LABELS } from './choices.ts'
import type { LogSummary, Outcome } from './messages.ts'
import type { DeniedCaller, Need, Simulated } from './simulate.ts'
import { TimelineChart } from './timeline-chart.tsx'

/** In one sentence. */
export function summaryOf({ question, results }: Outcome, { requests, callers }: LogSummary): string {
  const { limit, windowMs } = question
  const byKind = results.map(({ kind, denied, deniedCallers, fullest }) => {
    const label = KIND_LABELS[kind].toLowerCase()
    const ofLimit = share((fullest?.units ?? 0) / limit)
    return `${label} denies ${count(denied)} (${share(ratio(denied, requests))}), callers ever denied ${count(deniedCallers)}, fullest window ${ofLimit}`
  })
  const load = `${count(requests)} requests of ${count(callers)} callers`
  return `${load}, with ${count(limit)} per ${formatDuration(windowMs)}: ${byKind.join('; ') || 'no kind is chosen'}.`
}

export function ComparisonPanel({ outcome, log }: { readonly outcome: Outcome; readonly log: LogSummary }) {
  const { question, results, refused } = outcome
  const { limit, windowMs } = question
  const columns: readonly Column<Simulated>[] = [
    { id: 'kind', label: 'Kind', cell: ({ kind }) => KIND_LABELS[kind] },
    {
      id: 'admitted',
      label: 'Admitted',
      cell: ({ admitted }) => count(admitted),
      isNumber: true,
      isMinor: true,
    },
    {
      id: 'denied',
      label: 'Denied',
      cell: ({ denied }) => <Part part={denied} all={log.requests} />,
      isNumber: true,
    },
    {
      id: 'callers',
      label: 'Callers ever denied',
      cell: ({ deniedCallers }) => <Part part={deniedCallers} all={log.callers} />,
      isNumber: true,
      isMinor: true,
    },
    {
      id: 'fullest',
      label: 'Fullest window',
      cell: ({ fullest }) => <Fullness units={fullest?.units ?? 0} limit={limit} />,
    },
    {
      id: 'when',
      label: 'When, whose',
      cell: ({ fullest }) =>
        fullest !== null && (
          <>
            until {utc(fullest.atMs)} UTC, <span class="mono">{fullest.key}</span>
          </>
        ),
      isMinor: true,
    },
  ]
  return (
    <section class="panel" aria-label="Comparison">
      <h2>
        {count(limit)} per {formatDuration(windowMs)}, by each kind
      </h2>
      {refused.map(({ kind, message }) => (
        <Notice key={kind} tone="warn">
          <p>
            {KIND_LABELS[kind]}: {message}.
          </p>
        </Notice>
      ))}
      <Table label="The kinds compared" columns={columns} rows={results} keyOf={({ kind }) => kind} />
      <p class="muted">
        The fullest window is the most that one caller was admitted within any {formatDuration(windowMs)},
        wherever it begins
        {log.hasCosts ? ', in units' : ''}. What is over 100% passed at a boundary, or was saved up.
      </p>
    </section>
  )
}

function Part({ part, all }: { readonly part: number; readonly all: number }) {
  return (
    <>
      {count(part)} <span class="muted">{share(ratio(part, all))}</span>
    </>
  )
}

/** Up to twice the limit, which is marked. */
function Fullness({ units, limit }: { readonly units: number; readonly limit: number }) {
  const isOver = units > limit
  return (
    <span class="fullness">
      <span class="fullness-track" aria-hidden="true">
        <span
          class={isOver ? 'fullness-bar over' : 'fullness-bar'}
          style={{ width: `${Math.min(100, (50 * units) / limit)}%` }}
        />
      </span>
      <span>
        {count(units)}{' '}
        <span class={isOver ? 'denied' : 'muted'}>
          {share(units / limit)}
          {isOver && ': over'}
        </span>
      </span>
    </span>
  )
}

export function KindPanel({ simulated, log }: { readonly simulated: Simulated; readonly log: LogSummary }) {
  const { kind, admitted, denied, deniedMost } = simulated
  const label = KIND_LABELS[kind]
  const step = formatDuration(log.timeline.stepMs)
  return (
    <section class="panel" aria-label={label}>
      <div class="panel-head">
        <h3>{label}</h3>
        <ul class="legend">
          <li>
            <span class="swatch allowed" /> admitted
          </li>
          <li>
            <span class="swatch denied" /> denied
          </li>
          <li class="muted">each {step}, UTC</li>
        </ul>
      </div>
      <TimelineChart
        label={`${label}: requests over time, ${count(admitted)} admitted, ${count(denied)} denied`}
        timeline={log.timeline}
        simulated={simulated}
      />
      <Steps simulated={simulated} log={log} />
      <Table
        label={`${label}: denied most`}
        columns={DENIED_COLUMNS}
        rows={deniedMost}
        keyOf={({ key }) => key}
        empty="Nobody would be denied."
      />
    </section>
  )
}

const DENIED_COLUMNS: readonly Column<DeniedCaller>[] = [
  { id: 'key', label: 'Denied most', cell: ({ key }) => <span class="mono">{key}</span> },
  { id: 'denied', label: 'Denied', cell: ({ denied }) => count(denied), isNumber: true },
  {
    id: 'share',
    label: 'Of its requests',
    cell: ({ denied, requests }) => share(ratio(denied, requests)),
    isNumber: true,
  },
]

interface Step {
  readonly atMs: number
  readonly admitted: number
  readonly denied: number
}

const STEP_COLUMNS: readonly Column<Step>[] = [
  { id: 'at', label: 'From (UTC)', cell: ({ atMs }) => utc(atMs) },
  { id: 'admitted', label: 'Admitted', cell: ({ admitted }) => count(admitted), isNumber: true },
  {
    id: 'denied',
    label: 'Denied',
    cell: ({ denied }) => count(denied),
    isNumber: true,
    sort: ({ denied }) => denied,
  },
]

/** The chart in numbers, once they are asked for. */
function Steps({
  simulated,
  log: { timeline },
}: {
  readonly simulated: Simulated
  readonly log: LogSummary
}) {
  const [isOpen, setOpen] = useState(false)
  const { admittedOverTime, deniedOverTime, kind } = simulated
  const rows = (): readonly Step[] =>
    Array.from(admittedOverTime, (admitted, i) => ({
      atMs: timeline.fromMs + i * timeline.stepMs,
      admitted,
      denied: deniedOverTime[i]!,
    }))
  return (
    <details onToggle={({ currentTarget }) => setOpen(currentTarget.open)}>
      <summary>The chart in numbers</summary>
      {isOpen && (
        <Table
          label={`${KIND_LABELS[kind]}: over time`}
          columns={STEP_COLUMNS}
          rows={rows()}
          keyOf={({ atMs }) => `${atMs}`}
          pageSize={12}
        />
      )}
    </details>
  )
}

/** Which limit would fit, with a button that takes it. */
export function NeedsPanel({
  outcome: { needs, question },
  onTake,
}: {
  readonly outcome: Outcome
  readonly onTake: (limit: number) => void
}) {
  const columns: readonly Column<Need>[] = [
    { id: 'share', label: 'Callers never denied', cell: (need) => percentOf(need) },
    { id: 'limit', label: 'Limit needed', cell: ({ limit }) => count(limit), isNumber: true },
    {
      id: 'take',
      label: 'Try it',
      cell: (need) => (
        <button
          type="button"
          class="small"
          aria-label={`Try ${count(need.limit)}, for ${percentOf(need)} of callers`}
          onClick={() => onTake(need.limit)}
        >
          Try {count(need.limit)}
        </button>
      ),
    },
  ]
  return (
    <section class="panel needs" aria-label="What callers need">
      <h2>Which limit would fit?</h2>
      <p class="muted">
        By the fullest {formatDuration(question.windowMs)} of each caller, of all that he asked for: a sliding
        window with this limit would never have denied so many of them.
      </p>
      <Table label="What callers need" columns={columns} rows={needs} keyOf={({ share }) => `${share}`} />
    </section>
  )
}

function percentOf({ share }: Need): string {
  return `${Number((100 * share).toFixed(1))}%`
}
