// A limiter's overrides, from the API and the configuration.

import { type DeclaredLimit, type DeclaredLimiter, hasRule, type Override } from '../api-types.ts'
import { KeyLink } from '../components/key-link.tsx'
import { Loaded } from '../components/status.tsx'
import { type Column, Table } from '../components/table.tsx'
import { count, duration, limitInWords, ruleInWords } from '../format.ts'
import { useQuery } from '../use-query.ts'

const EVERY_MS = 10_000
const SHOWN = 1000

export function Overrides({ limiter }: { readonly limiter: DeclaredLimiter }) {
  const { name, config } = limiter
  const isOn = config.overrides !== false
  const path = `/v1/admin/overrides?limiter=${encodeURIComponent(name)}&count=${SHOWN}`
  const query = useQuery<Override[]>(isOn ? path : undefined, { everyMs: EVERY_MS })
  const declared = ((config.overrides || []) as readonly DeclaredOverride[]).map(
    ({ limits, ...override }): Row => ({
      ...override,
      rule: limits.map(limitInWords).join(', '),
      until: 'never (configured)',
    }),
  )
  const columns: readonly Column<Row>[] = [
    {
      id: 'key',
      label: 'Key',
      cell: (row) => <KeyLink limiter={name} of={row} />,
    },
    { id: 'rule', label: 'Override', cell: ({ rule }) => rule },
    { id: 'until', label: 'Expires', cell: ({ until }) => until },
  ]
  return (
    <section class="panel" aria-labelledby="overrides">
      <h2 id="overrides">Overrides</h2>
      {isOn ? (
        <Loaded query={query}>
          {(overrides) => (
            <>
              <Table
                label="Overrides"
                columns={columns}
                rows={[...overrides.flatMap(rowsOf), ...declared]}
                keyOf={({ dimension, key, rule, until }) => `${dimension ?? ''}=${key} ${rule} ${until}`}
                filterBy={({ key }) => key}
                filterLabel="Filter by key"
                pageSize={10}
                empty="No overrides."
              />
              {overrides.length === SHOWN && (
                <p class="muted">
                  Only the first {count(SHOWN)} keys. <code>slidegate override list</code> prints all.
                </p>
              )}
            </>
          )}
        </Loaded>
      ) : (
        <p class="muted">
          Disabled by <code>overrides: false</code> in this limiter's configuration.
        </p>
      )}
    </section>
  )
}

interface DeclaredOverride {
  readonly key: string
  readonly dimension?: string
  readonly limits: readonly DeclaredLimit[]
}

interface Row {
  readonly key: string
  readonly dimension?: string
  readonly rule: string
  readonly until: string
}

/** Returns a row for an override's rule and a row for its block. The two expire separately. */
function rowsOf(override: Override): readonly Row[] {
  const { key, dimension, blockedMs } = override
  const of = { key, ...(dimension !== undefined && { dimension }) }
  const until = (ms: number | null | undefined, other: string) =>
    ms === null || ms === undefined ? other : `in ${duration(ms)}`
  return [
    ...(hasRule(override)
      ? [{ ...of, rule: ruleInWords(override), until: until(override.expiresInMs, 'never') }]
      : []),
    ...(blockedMs === undefined ? [] : [{ ...of, rule: 'blocked', until: until(blockedMs, 'never') }]),
  ]
}
