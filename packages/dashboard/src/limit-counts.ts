import type { LimitCountsTold } from '../../server/src/admin/overview.ts'
import { useAsk } from './use-ask.ts'

export type LimitCounts = LimitCountsTold

const EVERY_MS = 5000

/** What the limits of a limiter have said, by the name of the limit. */
export function useLimitCounts(limiter: string): ReadonlyMap<string, LimitCounts> {
  const { data } = useAsk<{ readonly limits: readonly LimitCounts[] }>(
    `/v1/admin/limiters/${encodeURIComponent(limiter)}/limits`,
    { everyMs: EVERY_MS },
  )
  return new Map(data?.limits.map((limit) => [limit.name, limit]))
}
