// Results of a simulation: a comparison of limit kinds, a panel for each kind, and limits that would fit.

import { useState } from 'preact/hooks'
import type { Need } from '../../../replay/src/counts/needed-limits.ts'
import { formatDuration } from '../../../replay/src/text.ts'
import { Notice } from '../components/status.tsx'
import { type Column, Table } from '../components/table.tsx'
import { count, ratio, share, utc } from '../format.ts'
import { KIND_LABELS } from './choices.ts'
import type { LogSummary, Outcome } from './messages.ts'
import type { DeniedCaller, Simulated } from './simulate.ts'
import { TimelineChart } from './timeline-chart.tsx'

/** The results in one sentence. */
export function summaryOf({ question, results }: Outcome, { requests, callers }: LogSummary): string {
  const { limit, windowMs } = question
  const byKind = results.map(({ kind, denied, deniedCallers, fullest }) => {
    const label = KIND_LABELS[kind].toLowerCase()
    const ofLimit = share((fullest?.units ?? 0) / limit)
    return `${label} denies ${count(denied)} (${share(ratio(denied, requests))}) from ${count(deniedCallers)} callers, fullest window ${ofLimit}`
  })
  const load = `${count(requests)} requests from ${count(callers)} callers`
  return `${load}, with ${count(limit)} per ${formatDuration(windowMs)}: ${byKind.join('; ') || 'no kind is selected'}.`
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
      label: 'Callers denied',
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
      label: 'Time and caller',
      cell: ({ fullest }) =>
        fullest !== null && (
          <>
            {utc(fullest.atMs)} UTC, <span class="mono">{fullest.key}</span>
          </>
        ),
      isMinor: true,
    },
  ]
  return (
    <section class="panel" aria-label="Comparison">
      <h2>
        {count(limit)} per {formatDuration(windowMs)}, by kind
      </h2>
      {refused.map(({ kind, message }) => (
        <Notice key={kind} tone="warn">
          <p>
            {KIND_LABELS[kind]}: {message}.
          </p>
        </Notice>
      ))}
      <Table label="Comparison of kinds" columns={columns} rows={results} keyOf={({ kind }) => kind} />
      <p class="muted">
        The fullest window is the highest usage that one caller reached in any period of{' '}
        {formatDuration(windowMs)}
        {log.hasCosts ? ', in units' : ''}. Above 100%, a caller got more than the limit: across a window
        boundary, or from a full bucket.
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

/** A bar whose full width is twice the limit, with a mark at the limit. */
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
          <li class="muted">per {step}, UTC</li>
        </ul>
      </div>
      <TimelineChart
        label={`${label}: requests over time, ${count(admitted)} admitted, ${count(denied)} denied`}
        timeline={log.timeline}
        simulated={simulated}
      />
      <Steps simulated={simulated} log={log} />
      <Table
        label={`${label}: most denials`}
        columns={DENIED_COLUMNS}
        rows={deniedMost}
        keyOf={({ key }) => key}
        empty="No caller would be denied."
      />
    </section>
  )
}

const DENIED_COLUMNS: readonly Column<DeniedCaller>[] = [
  { id: 'key', label: 'Caller', cell: ({ key }) => <span class="mono">{key}</span> },
  { id: 'denied', label: 'Denied', cell: ({ denied }) => count(denied), isNumber: true },
  {
    id: 'share',
    label: 'Share denied',
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

/** The chart's data as a table. The table is rendered when the user opens it. */
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
      <summary>Show as a table</summary>
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

/** Limits that would fit, with buttons that apply them. */
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
    <section class="panel needs" aria-label="Limits that would fit">
      <h2>Which limit would fit?</h2>
      <p class="muted">
        For each share of callers, the lowest sliding window limit per {formatDuration(question.windowMs)}{' '}
        that would never have denied them.
      </p>
      <Table label="Limits that would fit" columns={columns} rows={needs} keyOf={({ share }) => `${share}`} />
    </section>
  )
}

function percentOf({ share }: Need): string {
  return `${Number((100 * share).toFixed(1))}%`
}
