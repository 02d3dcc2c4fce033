// Finds a key in all limiters.

import { type Explanation, StoreUnavailableError } from 'slidegate'
import type { ActiveLimiter } from '../service/service.ts'
import type { FoundKey } from './api-types.ts'
import { endOf } from './ban-status.ts'

/** Maximum number of limiters and dimensions to check. */
const MAX_CHECKED = 2000
/** Number of limiters to check at once. One call to Redis checks eight of them. */
const AT_A_TIME = 64

interface Found {
  readonly found: readonly FoundKey[]
  readonly checked: number
  readonly isComplete: boolean
}

/** A limiter and one of its dimensions. */
interface Place {
  readonly active: ActiveLimiter
  readonly dimension: string
}

/**
 * Looks up a key in all of these limiters and their dimensions. Charges nothing.
 *
 * @param lastDenied when the key was last denied, by `<limiter>/<dimension>`, in epoch milliseconds
 * @throws {SlidegateError} `invalid_key`
 * @throws {StoreUnavailableError} if no limiter could be checked
 */
export async function findKey(
  limiters: readonly ActiveLimiter[],
  key: string,
  lastDenied: ReadonlyMap<string, number>,
): Promise<Found> {
  const all = limiters.flatMap((active) =>
    Array.from(active.declared.usual.keys(), (dimension): Place => ({ active, dimension })),
  )
  const places = all.slice(0, MAX_CHECKED)
  const found: FoundKey[] = []
  let failures = 0
  const look = async (place: Place): Promise<FoundKey[]> => {
    const { active, dimension } = place
    const { name } = active.declared
    const of = { limiter: name, ...(dimension !== '' && { dimension }) }
    const deniedMs = lastDenied.get(`${name}/${dimension}`)
    const denied = deniedMs !== undefined && { lastDeniedAtMs: deniedMs }
    try {
      const explained = await active.reader.explain(dimension === '' ? key : { [dimension]: key })
      const known = { ...declaredOverride(place, key), ...stateIn(explained), ...denied }
      return Object.keys(known).length === 0 ? [] : [{ ...of, allowed: explained.allowed, ...known }]
    } catch (error) {
      if (!(error instanceof StoreUnavailableError) || ++failures === places.length) throw error
      return [{ ...of, ...denied, problem: `store_${error.reason}` }]
    }
  }
  for (let from = 0; from < places.length; from += AT_A_TIME) {
    const some = places.slice(from, from + AT_A_TIME)
    const looked = await Promise.all(some.map(look))
    // After an outage, a circuit breaker lets one call through. The others have to wait until that call has succeeded.
    const again = looked.map((each, i) => (each[0]?.problem === 'store_down' ? look(some[i]!) : each))
    found.push(...(await Promise.all(again)).flat())
  }
  return { found, checked: places.length, isComplete: places.length === all.length }
}

/** The key's state in the store. Empty for an unknown key. */
function stateIn({ atMs, limits, bans, overrides }: Explanation): Partial<FoundKey> {
  const used = limits.filter((limit) => limit.used > 0)
  const [fullest] = used.toSorted((a, b) => b.used / b.limit - a.used / a.limit)
  const [ban] = bans
  const [override] = overrides
  return {
    ...(fullest && { fullest: { name: fullest.name, used: fullest.used, limit: fullest.limit } }),
    ...(ban && ban.level + ban.denials > 0 && { bans: ban.level, denials: ban.denials }),
    ...(ban && ban.blockedMs > 0 && { bannedUntilMs: atMs + ban.blockedMs }),
    ...(override?.blockedMs !== undefined && { blockedUntilMs: endOf(atMs, override.blockedMs) }),
    ...(override?.exempt && { override: 'exempt' as const }),
    ...(override?.limits && { override: 'limits' as const }),
  }
}

function declaredOverride({ active, dimension }: Place, key: string): Partial<FoundKey> {
  return active.declared.hasOverride(dimension, key) ? { override: 'configured' } : {}
}
