import type { Callers } from '../admin/keys-together.ts'
import { gauge, type Metric, type Row } from './metric.ts'

/** How many ask, and whether one of them makes up most of it. */
export function callerMetrics(callers: ReadonlyMap<string, Callers> = new Map()): Metric[] {
  const rows = (of: keyof Callers): Row<number>[] =>
    Array.from(callers, ([limiter, found]) => [{ limiter }, found[of]])
  return [
    gauge('slidegate_distinct_callers', 'Different keys of the last minutes, estimated.', rows('distinct')),
    gauge(
      'slidegate_top_caller_share',
      'Share of the requests of the last minutes that the busiest key has made.',
      rows('topShare'),
    ),
  ]
}
