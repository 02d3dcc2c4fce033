import { useEffect, useState } from 'preact/hooks'
import { askText } from './api.ts'
import { useLive } from './live.tsx'

/** What became of requests at one limit, since the instance that was asked has started. */
export interface LimitCounts {
  readonly requests: number
  readonly denials: number
  readonly shadowDenials: number
  /** Admitted with 80% of the limit used, or more. */
  readonly near: number
  /** Share of the limit that was used once a request was decided, on average. */
  readonly meanUse: number | null
}

const EVERY_MS = 5000

const FIELDS: Readonly<Record<string, string>> = {
  slidegate_limit_denials_total: 'denials',
  slidegate_limit_shadow_denials_total: 'shadowDenials',
  slidegate_limit_near_total: 'near',
  slidegate_limit_utilization_ratio_count: 'requests',
  slidegate_limit_utilization_ratio_sum: 'use',
}

/** What the metrics of the service say of the limits of a limiter, by the name of the limit. */
export function limitCountsIn(metrics: string, limiter: string): ReadonlyMap<string, LimitCounts> {
  const found = new Map<string, Record<string, number>>()
  for (const [, metric = '', of, limit = '', value] of metrics.matchAll(
    /^(slidegate_limit_\w+)\{limiter="([^"]*)",limit="([^"]*)"\} (\S+)$/gm,
  )) {
    const field = FIELDS[metric]
    if (field === undefined || of !== limiter) continue
    found.set(limit, { ...found.get(limit), [field]: Number(value) })
  }
  return new Map(
    Array.from(found, ([limit, { requests = 0, denials = 0, shadowDenials = 0, near = 0, use = 0 }]) => [
      limit,
      { requests, denials, shadowDenials, near, meanUse: requests === 0 ? null : use / requests },
    ]),
  )
}

export function useLimitCounts(limiter: string): ReadonlyMap<string, LimitCounts> {
  const { connections } = useLive()
  const [counts, setCounts] = useState<ReadonlyMap<string, LimitCounts>>(new Map())
  useEffect(() => {
    const gone = new AbortController()
    const read = (): void => {
      if (document.hidden) return
      askText('/metrics', gone.signal).then(
        (text) => setCounts(limitCountsIn(text, limiter)),
        () => {},
      )
    }
    read()
    const timer = setInterval(read, EVERY_MS)
    return () => {
      clearInterval(timer)
      gone.abort()
    }
  }, [limiter, connections])
  return counts
}
