import { duration } from '../../format.ts'
import { type LimiterTold, limitInWords, type OverrideTold } from '../../told.ts'
import { useAsk } from '../../use-ask.ts'
import { KeyLink } from '../key-link.tsx'
import { Answered } from '../status.tsx'
import { type Column, Table } from '../table.tsx'

const EVERY_MS = 10_000

/** Keys with limits of their own: those that operators have given, and those of the configuration. */
export function Overrides({ limiter }: { readonly limiter: LimiterTold }) {
  const { name } = limiter
  const asked = useAsk<{ overrides: OverrideTold[] }>(
    `/v1/admin/overrides?limiter=${encodeURIComponent(name)}`,
    {
      everyMs: EVERY_MS,
    },
  )
  const declared = ((limiter.config.overrides ?? []) as readonly Omit<OverrideTold, 'expiresInMs'>[]).map(
    (override): Row => ({ ...override, until: 'the configuration changes' }),
  )
  const columns: readonly Column<Row>[] = [
    {
      id: 'key',
      label: 'Key',
      cell: (row) => <KeyLink limiter={name} of={row} />,
    },
    { id: 'limits', label: 'Held to', cell: ({ limits }) => limits.map(limitInWords).join(', ') },
    { id: 'until', label: 'Until', cell: ({ until }) => until },
  ]
  return (
    <section class="panel" aria-labelledby="overrides">
      <h2 id="overrides">Keys with limits of their own</h2>
      <Answered asked={asked}>
        {({ overrides }) => (
          <Table
            label="Overrides"
            columns={columns}
            rows={[...overrides.map(rowOf), ...declared]}
            keyOf={({ dimension, key, until }) => `${dimension ?? ''}=${key} ${until}`}
            filterBy={({ key }) => key}
            filterLabel="Filter by key"
            pageSize={10}
            empty="None has."
          />
        )}
      </Answered>
    </section>
  )
}

interface Row extends Omit<OverrideTold, 'expiresInMs'> {
  readonly until: string
}

function rowOf({ expiresInMs, ...override }: OverrideTold): Row {
  return { ...override, until: expiresInMs === 0 ? 'it is deleted' : `${duration(expiresInMs)} from now` }
}
