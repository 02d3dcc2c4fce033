// A limiter's traffic: live for five minutes, or recorded for an hour or a week.

import { useState } from 'preact/hooks'
import type { CountSeries, History } from '../../../server/src/admin/api-types.ts'
import { RequestChart } from '../components/chart.tsx'
import { KeyLink } from '../components/key-link.tsx'
import { type Range, RangeSwitch } from '../components/range-switch.tsx'
import { SeriesCharts, useSeries } from '../components/series-chart.tsx'
import { Loaded } from '../components/status.tsx'
import { type Column, Table } from '../components/table.tsx'
import { count, ratio, share } from '../format.ts'
import { UsageTable } from './usage-table.tsx'

export function Traffic({
  limiter,
  history,
  hasPages,
}: {
  readonly limiter: string
  readonly history: History | undefined
  readonly hasPages: boolean
}) {
  const [range, setRange] = useState<Range>('5m')
  const query = useSeries(limiter, range === '5m' ? undefined : range)
  return (
    <section class="panel" aria-labelledby="traffic">
      <div class="panel-head">
        <h2 id="traffic">Traffic</h2>
        <RangeSwitch ranges={['5m', '1h', '7d']} range={range} onChange={setRange} />
      </div>
      {range === '5m' ? (
        <>
          {history !== undefined && <RequestChart title="Requests per second" history={history} />}
          <UsageTable path={`/v1/admin/limiters/${encodeURIComponent(limiter)}/usage`} />
        </>
      ) : (
        <Loaded query={query}>
          {(series) => (
            <>
              <SeriesCharts series={series} />
              <PastKeys limiter={limiter} keys={series.keys ?? []} hasPages={hasPages} />
            </>
          )}
        </Loaded>
      )}
    </section>
  )
}

type PastKey = NonNullable<CountSeries['keys']>[number]

/** The busiest keys in the range. */
function PastKeys({
  limiter,
  keys,
  hasPages,
}: {
  readonly limiter: string
  readonly keys: readonly PastKey[]
  readonly hasPages: boolean
}) {
  const columns: readonly Column<PastKey>[] = [
    { id: 'key', label: 'Key', cell: (of) => <KeyLink limiter={limiter} of={of} hasPage={hasPages} /> },
    {
      id: 'requests',
      label: 'Requests',
      cell: ({ allowed, denied }) => count(allowed + denied),
      sort: ({ allowed, denied }) => allowed + denied,
      isNumber: true,
    },
    {
      id: 'denied',
      label: 'Denied',
      cell: ({ denied }) => count(denied),
      sort: ({ denied }) => denied,
      isNumber: true,
    },
    {
      id: 'share',
      label: 'Share denied',
      cell: ({ allowed, denied }) => share(ratio(denied, allowed + denied)),
      isNumber: true,
      isMinor: true,
    },
    {
      id: 'units',
      label: 'Units',
      cell: ({ units }) => count(units),
      sort: ({ units }) => units,
      isNumber: true,
      isMinor: true,
    },
  ]
  return (
    <>
      <Table
        label="Busiest keys in this range"
        columns={columns}
        rows={keys}
        keyOf={({ dimension, key }) => `${dimension ?? ''}=${key}`}
        pageSize={10}
        empty="No keys."
      />
      <p class="muted">A key’s counts cover only the times when it was watched or among the busiest.</p>
    </>
  )
}
