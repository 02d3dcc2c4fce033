// The last five minutes, second by second, for charts.

import { useEffect, useRef, useState } from 'preact/hooks'
import type { History, LimiterRates, Overview } from '../../server/src/admin/api-types.ts'
import { request } from './api.ts'
import { secondOf, useLive } from './live.tsx'

/** Number of seconds to keep. */
const KEPT = 300

/** Returns the history of one limiter, or of all. Live updates extend it. */
export function useHistory(limiter?: string): History | undefined {
  const { overview, connections } = useLive()
  const [gaps, setGaps] = useState(0)
  const missed = useRef<Overview>()
  const [history, setHistory] = useState<{ readonly of: string | undefined; readonly rows: History }>()
  useEffect(() => {
    if (connections === 0) return
    const gone = new AbortController()
    const query = limiter === undefined ? '' : `?limiter=${encodeURIComponent(limiter)}`
    request<History>('GET', `/v1/admin/history${query}`, undefined, gone.signal).then(
      (rows) => setHistory({ of: limiter, rows }),
      () => {},
    )
    return () => gone.abort()
  }, [limiter, connections, gaps])
  useEffect(() => {
    if (overview === undefined || history === undefined || history.of !== limiter) return
    const rows = appended(history.rows, overview, limiter)
    if (rows === undefined) {
      // Reloads only once per update: if an instance doesn't respond, there is still a gap after the reload.
      if (missed.current !== overview) setGaps((sum) => sum + 1)
      missed.current = overview
    } else if (rows !== history.rows) setHistory({ of: limiter, rows })
  }, [overview, history, limiter])
  return history?.of === limiter ? history?.rows : undefined
}

/**
 * Appends one second to the rows for a limiter, or for all limiters.
 *
 * Returns `undefined` if there is a gap before that second. The history must then be loaded again.
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
