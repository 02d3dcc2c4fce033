// One of a key's limits: its usage, its window, and when units become free.

import type { Charge, ExplainedLimit } from '../api-types.ts'
import { Badge } from '../components/status.tsx'
import { type Column, Table } from '../components/table.tsx'
import { useUniqueId } from '../components/unique-id.ts'
import { count, limitInWords, roundDuration, share, timeOfDay } from '../format.ts'
import type { ServiceClock } from './motion.ts'
import { countsMs, type Level } from './window-geometry.ts'
import { WindowPicture } from './window-picture.tsx'

export function LimitPanel({
  limit,
  atMs,
  levels,
  clock,
  isOverride,
}: {
  readonly limit: ExplainedLimit
  readonly atMs: number
  readonly levels: readonly Level[]
  readonly clock: ServiceClock
  readonly isOverride: boolean
}) {
  const id = useUniqueId()
  const { name, used, limit: most, shadow, declared, charges = [], olderUnits = 0 } = limit
  const ratio = used / most
  return (
    <section class="panel limit-panel" aria-labelledby={id} data-limit={name}>
      <div class="panel-head">
        <h2 id={id}>
          <span class="mono">{name}</span>{' '}
          {declared !== undefined && <span class="muted plain-weight">{limitInWords(declared)}</span>}
        </h2>
        <div class="actions">
          {isOverride && <Badge tone="warn">override: {count(most)}</Badge>}
          {shadow && <Badge tone="warn">shadow</Badge>}
          {used >= most ? (
            <Badge tone="bad">full</Badge>
          ) : (
            <Badge tone="good">{count(most - used)} free</Badge>
          )}
        </div>
      </div>
      <div class="filling">
        <meter
          class="hidden"
          aria-label={`Usage of ${name}`}
          min={0}
          max={most}
          value={Math.min(used, most)}
        />
        <div class={used >= most ? 'bar-of full' : 'bar-of'} aria-hidden="true">
          <div style={{ width: `${Math.min(100, 100 * ratio)}%` }} />
        </div>
        <p>
          <strong class="used">{count(used)}</strong> of {count(most)} used{' '}
          <span class="muted">({share(ratio)})</span>
        </p>
      </div>
      <div class="window-and-frees">
        <div class="window-column">
          <WindowPicture limit={limit} atMs={atMs} levels={levels} clock={clock} />
          {olderUnits > 0 && (
            <p class="muted">
              {count(olderUnits)} older {olderUnits === 1 ? 'unit is' : 'units are'} not shown.
            </p>
          )}
          {charges.length > 0 && <Charges limit={limit} charges={charges} atMs={atMs} />}
        </div>
        <Frees limit={limit} atMs={atMs} />
      </div>
    </section>
  )
}

type Free = ExplainedLimit['frees'][number]

/** Shows when units become free. */
function Frees({ limit, atMs }: { readonly limit: ExplainedLimit; readonly atMs: number }) {
  const columns: readonly Column<Free>[] = [
    { id: 'in', label: 'In', cell: ({ afterMs }) => roundDuration(afterMs) },
    { id: 'at', label: 'At', cell: ({ afterMs }) => timeOfDay(atMs + afterMs), isMinor: true },
    { id: 'units', label: 'Units freed by then', cell: ({ units }) => count(units), isNumber: true },
  ]
  return (
    <div class="frees">
      <Table
        label={`When units of ${limit.name} become free`}
        columns={columns}
        rows={limit.frees}
        keyOf={({ units }) => `${units}`}
        empty="Nothing is used."
      />
    </div>
  )
}

/** The charges in the picture, as a table. */
function Charges({
  limit,
  charges,
  atMs: nowMs,
}: {
  readonly limit: ExplainedLimit
  readonly charges: readonly Charge[]
  readonly atMs: number
}) {
  const columns: readonly Column<Charge>[] = [
    { id: 'at', label: 'At', cell: ({ atMs }) => timeOfDay(atMs) },
    { id: 'ago', label: 'Ago', cell: ({ atMs }) => roundDuration(nowMs - atMs), isNumber: true },
    { id: 'units', label: 'Units', cell: ({ units }) => count(units), isNumber: true },
    {
      id: 'free',
      label: 'Free in',
      cell: ({ atMs }) => roundDuration(Math.max(0, atMs + countsMs(limit) - nowMs)),
      isNumber: true,
    },
  ]
  return (
    <details>
      <summary>
        {charges.length === 1 ? 'The charge' : `All ${count(charges.length)} charges`} as a table
      </summary>
      <Table
        label={`Charges to ${limit.name}, newest first`}
        columns={columns}
        rows={charges.toReversed()}
        keyOf={({ atMs }) => `${atMs}`}
        pageSize={20}
      />
    </details>
  )
}
