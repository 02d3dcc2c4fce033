// The busiest keys: their requests, their denials, and the usage of their fullest limits.

import { type Explanation, keyOf, type OneKey } from '../api-types.ts'
import { isCut, KeyLink } from '../components/key-link.tsx'
import { UsageMeter } from '../components/stats.tsx'
import { type Column, Table } from '../components/table.tsx'
import { count, NONE, share } from '../format.ts'
import { useQuery } from '../use-query.ts'
import { demandInWords, idOf, type KeyTraffic, rangeInWords } from './key-traffic.ts'

const PAGE = 10
const EXPLAIN_EVERY_MS = 3000

export function KeysTable({
  limiter,
  keys,
  hasPages,
}: {
  readonly limiter: string
  readonly keys: readonly KeyTraffic[]
  readonly hasPages: boolean
}) {
  const columns: Column<KeyTraffic>[] = [
    {
      id: 'key',
      label: 'Key',
      cell: (row) => <KeyLink limiter={limiter} of={row} hasPage={hasPages} />,
      sort: ({ key }) => key,
    },
    {
      id: 'requests',
      label: 'Requests',
      cell: ({ requests }) => rangeInWords(requests, count),
      sort: ({ requests }) => requests.most,
      isNumber: true,
      isMinor: true,
    },
    {
      id: 'denied',
      label: 'Denied',
      cell: ({ denied }) => (
        <span class={denied.least > 0 ? 'denied' : undefined}>{rangeInWords(denied, count)}</span>
      ),
      sort: ({ denied }) => denied.most,
      isNumber: true,
    },
    {
      id: 'share',
      label: 'Share denied',
      cell: ({ shareDenied }) => rangeInWords(shareDenied, share),
      sort: ({ shareDenied }) => shareDenied.most,
      isNumber: true,
    },
    {
      id: 'demand',
      label: 'Demand',
      cell: ({ demand }) => (demand === undefined ? NONE : demandInWords(demand)),
      sort: ({ demand }) => demand?.least ?? 0,
      isNumber: true,
    },
    ...(hasPages
      ? [
          {
            id: 'use',
            label: 'Fullest limit now',
            cell: ({ key, dimension }: KeyTraffic) => <FullestLimit of={{ limiter, key, dimension }} />,
            isMinor: true,
          },
        ]
      : []),
  ]
  return (
    <>
      <Table
        label="Keys"
        columns={columns}
        rows={keys}
        keyOf={idOf}
        sortedBy="denied"
        filterBy={textOf}
        filterLabel="Filter by key"
        pageSize={PAGE}
        empty="No requests in the last few minutes."
      />
      <p class="muted">
        Demand: a key’s requests, as a multiple of the number that the usual limits admit in the same time.
        Plans and overrides aren’t considered. Ranges are estimates: the service only counts the busiest keys
        exactly.
      </p>
    </>
  )
}

function textOf({ dimension = '', key }: KeyTraffic): string {
  return `${dimension} ${key}`
}

/** Shows which of a key's limits is the fullest now. */
function FullestLimit({ of }: { readonly of: OneKey }) {
  const body = { limiter: of.limiter, key: keyOf(of) }
  const path = isCut(of.key) ? undefined : '/v1/explain'
  const { data } = useQuery<Explanation>(path, { body, everyMs: EXPLAIN_EVERY_MS })
  const fullest = data?.limits
    .filter(({ limit }) => limit > 0)
    .toSorted((a, b) => b.used / b.limit - a.used / a.limit)[0]
  if (fullest === undefined) return <span class="muted">{NONE}</span>
  const { name, used, limit, shadow } = fullest
  return (
    <span class="use">
      <UsageMeter share={used / limit} label={`Usage of ${name}`} />
      <span>
        {share(used / limit)}{' '}
        <span class="muted">
          {name}: {count(used)}
          {shadow && ' (shadow)'}
        </span>
      </span>
    </span>
  )
}
