// Follows the service's live state, second by second. All pages share one connection.

import { type ComponentChildren, createContext } from 'preact'
import { useContext, useEffect, useState } from 'preact/hooks'
import type { LimiterRates, Overview } from '../../server/src/admin/api-types.ts'
import { events } from './api.ts'

/** The latest update, earlier values for charts, and the state of the connection. */
export interface Live {
  readonly state: 'connecting' | 'live' | 'lost'
  /** The last update. */
  readonly overview: Overview | undefined
  /** When the last update arrived, on the browser's clock. */
  readonly heardAtMs: number
  /** Number of connections so far. Queries are repeated after each reconnect. */
  readonly connections: number
  /** Latency of store calls since the page was opened, in milliseconds. */
  readonly latency: Latency
  /** Requests per second for each limiter in the last minute. No values from before the page was opened. */
  readonly traces: ReadonlyMap<string, readonly number[]>
}

/** Latency over time, in columns of equal length. */
interface Latency {
  readonly seconds: readonly number[]
  readonly p50: readonly (number | null)[]
  readonly p99: readonly (number | null)[]
}

const NOTHING: Live = {
  state: 'connecting',
  overview: undefined,
  heardAtMs: 0,
  connections: 0,
  latency: { seconds: [], p50: [], p99: [] },
  traces: new Map(),
}

/** Number of rows to keep for charts. */
const KEPT = 300
const TRACED = 60

/** A connection counts as lost after this long without an update. */
const SILENT_MS = 6000
const FIRST_RETRY_MS = 500
const LAST_RETRY_MS = 8000

const Context = createContext<Live>(NOTHING)

export function useLive(): Live {
  return useContext(Context)
}

/** Follows the service while the tab is visible. Reconnects when the connection is lost. */
export function LiveProvider({ children }: { readonly children: ComponentChildren }) {
  const [live, setLive] = useState(NOTHING)
  const isVisible = useVisible()
  useEffect(() => {
    if (!isVisible) return
    const gone = new AbortController()
    void follow(gone.signal, {
      heard: (overview) => setLive((last) => heard(last, overview)),
      lost: () => setLive((last) => ({ ...last, state: 'lost' })),
    })
    return () => {
      gone.abort()
      setLive((last) => ({ ...last, state: 'connecting' }))
    }
  }, [isVisible])
  return <Context.Provider value={live}>{children}</Context.Provider>
}

interface Listener {
  heard(overview: Overview): void
  lost(): void
}

async function follow(gone: AbortSignal, listener: Listener): Promise<void> {
  let retryMs = FIRST_RETRY_MS
  while (!gone.aborted) {
    const silent = new AbortController()
    let timer = setTimeout(() => silent.abort(), SILENT_MS)
    try {
      for await (const { event, data } of events('/v1/admin/live', AbortSignal.any([gone, silent.signal]))) {
        clearTimeout(timer)
        timer = setTimeout(() => silent.abort(), SILENT_MS)
        if (event !== 'overview') continue
        retryMs = FIRST_RETRY_MS
        listener.heard(JSON.parse(data) as Overview)
      }
    } catch {
      // Every failure is retried.
    }
    clearTimeout(timer)
    if (gone.aborted) return
    listener.lost()
    await passed(retryMs, gone)
    retryMs = Math.min(2 * retryMs, LAST_RETRY_MS)
  }
}

/** Resolves after this time, or as soon as the network is back. */
function passed(ms: number, gone: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const over = new AbortController()
    const end = (): void => {
      clearTimeout(timer)
      over.abort()
      resolve()
    }
    const timer = setTimeout(end, ms)
    const { signal } = over
    addEventListener('online', end, { signal })
    gone.addEventListener('abort', end, { signal })
  })
}

function heard(last: Live, overview: Overview): Live {
  const { callMs } = overview.store
  const { seconds, p50, p99 } = last.latency
  const second = secondOf(overview)
  const heardAtMs = Date.now()
  // If a second is repeated, only the overview is replaced.
  if (last.state === 'live' && second === seconds.at(-1)) return { ...last, overview, heardAtMs }
  const isNew = last.state !== 'live'
  return {
    state: 'live',
    overview,
    heardAtMs,
    connections: last.connections + (isNew ? 1 : 0),
    latency: {
      seconds: [...seconds, second].slice(-KEPT),
      p50: [...p50, callMs?.p50 ?? null].slice(-KEPT),
      p99: [...p99, callMs?.p99 ?? null].slice(-KEPT),
    },
    traces: new Map(
      overview.limiters.map((limiter) => [
        limiter.name,
        // A lost connection leaves a gap, so the trace starts over.
        [...((!isNew && last.traces.get(limiter.name)) || []), requestsPerSecond(limiter)].slice(-TRACED),
      ]),
    ),
  }
}

/** The epoch second of an update. */
export function secondOf({ atMs }: Overview): number {
  return Math.floor(atMs / 1000)
}

export function requestsPerSecond({ allowedPerSecond, deniedPerSecond }: LimiterRates): number {
  return allowedPerSecond + deniedPerSecond
}

/**
 * Whether the tab is visible. A hidden tab sends no requests and opens no streams, because a browser's tabs share six
 * connections per host.
 */
export function useVisible(): boolean {
  const [isVisible, setVisible] = useState(!document.hidden)
  useEffect(() => {
    const look = (): void => setVisible(!document.hidden)
    document.addEventListener('visibilitychange', look)
    return () => document.removeEventListener('visibilitychange', look)
  }, [])
  return isVisible
}
