// Charts for the last hour, by minute, or the last week, by hour.

import type { CountSeries } from '../../../server/src/admin/api-types.ts'
import { compact } from '../format.ts'
import { type Query, useQuery } from '../use-query.ts'
import { Chart, type ChartSeries } from './chart.tsx'

/** The polling interval. A minute's counts appear a few seconds after the minute ends. */
const EVERY_MS = 15_000

export type LongRange = CountSeries['range']

/** The counts for a limiter, or for one of its keys. */
export function useSeries(
  limiter: string,
  range: LongRange | undefined,
  of?: { readonly key: string; readonly dimension?: string | undefined },
): Query<CountSeries> {
  const query = new URLSearchParams({ range: range ?? '1h', ...(of && { key: of.key }) })
  if (of?.dimension !== undefined) query.set('dimension', of.dimension)
  const path = `/v1/admin/limiters/${encodeURIComponent(limiter)}/history?${query}`
  return useQuery<CountSeries>(range && path, { everyMs: EVERY_MS })
}

/** Charts the requests, and also the units if they differ from the requests. */
export function SeriesCharts({ series }: { readonly series: CountSeries }) {
  const { allowed, denied, shadowDenied, units, seconds, stepSeconds } = series
  const times = { seconds, stepSeconds }
  const per = series.range === '1h' ? 'minute' : 'hour'
  const requests: ChartSeries[] = [
    { label: 'Allowed', tone: 'allowed', values: allowed, isFilled: true },
    { label: 'Denied', tone: 'denied', values: denied },
    ...(shadowDenied
      ? [{ label: 'Shadow denials', tone: 'shadow-denied', values: shadowDenied, isDashed: true } as const]
      : []),
  ]
  const hasUnits = units.some((value, i) => value !== allowed[i])
  return (
    <>
      <Chart title={`Requests per ${per}`} {...times} series={requests} format={compact} />
      {hasUnits && (
        <Chart
          title={`Units per ${per}`}
          {...times}
          series={[{ label: 'Units', tone: 'accent', values: units, isFilled: true }]}
          format={compact}
        />
      )}
      {allowed.includes(null) && (
        <p class="muted">
          {series.key === undefined
            ? 'During gaps, no instance was counting.'
            : 'During gaps, the key was neither watched nor among the busiest keys, or no instance was counting.'}
        </p>
      )}
    </>
  )
}
