import type { History, LimiterRates, Overview } from '../../server/src/admin/overview.ts'

/** Seconds that are kept. */
const KEPT = 300

export function secondOf({ atMs }: Overview): number {
  return Math.floor(atMs / 1000)
}

/**
 * The rows with those of one second more: of a limiter, or of all. `undefined` where seconds in between were not told: what is
 * summed up has to be all there is.
 */
export function appended(
  rows: History,
  overview: Overview,
  limiter: string | undefined,
): History | undefined {
  const second = secondOf(overview)
  const last = rows.seconds.at(-1)
  if (last !== undefined && second <= last) return rows
  if (last !== undefined && second > last + 1) return undefined
  const counted = overview.limiters.filter(({ name }) => limiter === undefined || name === limiter)
  const grown = (column: readonly number[], of: (rates: LimiterRates) => number) => [
    ...column.slice(1 - KEPT),
    counted.reduce((sum, rates) => sum + of(rates), 0),
  ]
  return {
    seconds: [...rows.seconds.slice(1 - KEPT), second],
    allowed: grown(rows.allowed, ({ allowedPerSecond }) => allowedPerSecond),
    denied: grown(rows.denied, ({ deniedPerSecond }) => deniedPerSecond),
    shadowDenied: grown(rows.shadowDenied, ({ shadowDeniedPerSecond }) => shadowDeniedPerSecond),
  }
}
