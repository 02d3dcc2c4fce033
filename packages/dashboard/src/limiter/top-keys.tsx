// The most frequent keys, and how full their limits are.

import { type Explanation, keyOf, type TopKey, type TopKeyList } from '../api-types.ts'
import { isCut, KeyLink } from '../components/key-link.tsx'
import { UsageMeter } from '../components/stats.tsx'
import { Loaded } from '../components/status.tsx'
import { type Column, Table } from '../components/table.tsx'
import { compact, count, duration, NONE, share } from '../format.ts'
import { type Query, useQuery } from '../use-query.ts'

const PAGE = 10
const EXPLAIN_EVERY_MS = 3000

export function TopKeys({
  title,
  limiter,
  query,
  unit,
  hasPages,
  showsUse = false,
}: {
  readonly title: string
  readonly limiter: string
  readonly query: Query<TopKeyList>
  /** What is counted. */
  readonly unit: string
  /** Whether keys have pages. */
  readonly hasPages: boolean
  /** Whether the fullest window of each key is told. */
  readonly showsUse?: boolean
}) {
  const id = `top-${unit.toLowerCase()}`
  const columns: Column<TopKey>[] = [
    {
      id: 'key',
      label: 'Key',
      cell: (row) => <KeyLink limiter={limiter} of={row} hasPage={hasPages} />,
    },
    {
      id: 'count',
      label: unit,
      // What a sketch has counted is a range.
      cell: ({ count: most, error }) =>
        error === 0 ? count(most) : `${count(most - error)} to ${count(most)}`,
      isNumber: true,
    },
    ...(showsUse && hasPages
      ? [
          {
            id: 'use',
            label: 'Fullest limit now',
            cell: (row: TopKey) => <FullestWindow limiter={limiter} of={row} />,
          },
        ]
      : []),
  ]
  return (
    <section class="panel" aria-labelledby={id}>
      <div class="panel-head">
        <h2 id={id}>{title}</h2>
        {query.data !== undefined && (
          <span class="muted">
            {query.data.spanMs > 0 && `last ${duration(Math.ceil(query.data.spanMs / 1000) * 1000)}`}
            {query.data.distinct !== undefined &&
              `, ≈ ${compact(query.data.distinct)} ${query.data.distinct === 1 ? 'caller' : 'callers'}`}
          </span>
        )}
      </div>
      <Loaded query={query}>
        {({ keys }) => (
          <Table
            label={title}
            columns={columns}
            rows={keys}
            keyOf={({ dimension, key }) => `${dimension ?? ''}=${key}`}
            pageSize={PAGE}
            empty="Nobody in the last minutes."
          />
        )}
      </Loaded>
    </section>
  )
}

/** How full the fullest limit of a key is, by what the store holds now. */
function FullestWindow({ limiter, of }: { readonly limiter: string; readonly of: TopKey }) {
  const { dimension, key } = of
  const body = { limiter, key: keyOf({ limiter, key, dimension }) }
  const path = isCut(key) ? undefined : '/v1/explain'
  const { data } = useQuery<Explanation>(path, { body, everyMs: EXPLAIN_EVERY_MS })
  const fullest = data?.limits
    .filter(({ limit }) => limit > 0)
    .toSorted((a, b) => b.used / b.limit - a.used / a.limit)[0]
  if (fullest === undefined) return <span class="muted">{NONE}</span>
  const { name, used, limit, shadow } = fullest
  return (
    <span class="use">
      <UsageMeter share={used / limit} label={`Used of ${name}`} />
      <span>
        {share(used / limit)}{' '}
        <span class="muted">
          {count(used)} of {name}
          {shadow && ' (shadow)'}
        </span>
      </span>
    </span>
  )
}
