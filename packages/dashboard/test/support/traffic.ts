import { randomSequence } from '../../../replay/test/support/logs.ts'
import type { History } from '../../../server/src/admin/api-types.ts'
import { mergeTop } from '../../../server/src/admin/merge-keys.ts'
import { SlidingKeys } from '../../../server/src/admin/sliding-keys.ts'
import type { Decision } from '../../../slidegate/src/decision.ts'
import type { DeclaredLimit, TopKeyList } from '../../src/api-types.ts'

/** A request: its time in milliseconds, and its key or the keys of its dimensions. */
export interface Arrival {
  readonly atMs: number
  readonly key: string | Readonly<Record<string, string>>
}

/** The reports of the service about some traffic. */
export interface Observed {
  readonly history: History
  readonly requests: TopKeyList
  readonly denials: TopKeyList
  readonly limits: readonly DeclaredLimit[]
}

interface Limit {
  readonly limit: number
  readonly windowMs: number
  readonly shadow?: boolean
}

/** The number of keys that the page requests. */
const LISTED = 1000

/**
 * Sends traffic through sliding windows, and counts it as the service does.
 *
 * @param limits the limits of single keys, or of each dimension
 * @param since the first second that is counted
 */
export function observe(
  arrivals: readonly Arrival[],
  seconds: number,
  limits: Limit | Readonly<Record<string, Limit>>,
  since = 0,
): Observed {
  const byDimension = ('limit' in limits ? { '': limits } : limits) as Readonly<Record<string, Limit>>
  /** The times of admitted requests. Those before `first` no longer count. */
  const logs = new Map<string, { readonly times: number[]; first: number }>()
  const usage = new SlidingKeys(since * 1000)
  const column = () => new Array<number>(seconds - since).fill(0)
  const [allowed, denied, shadowDenied] = [column(), column(), column()]
  for (const { atMs, key } of arrivals.toSorted((a, b) => a.atMs - b.atMs)) {
    const parts = Object.entries(typeof key === 'string' ? { '': key } : key).map(([dimension, each]) => {
      const { limit, windowMs, shadow } = byDimension[dimension]!
      const name = `${dimension}=${each}`
      const log = logs.get(name) ?? { times: [], first: 0 }
      logs.set(name, log)
      while (log.times[log.first]! <= atMs - windowMs) log.first++
      const isFull = log.times.length - log.first >= limit
      return { dimension, each, log, isFull, denies: isFull && !shadow }
    })
    const isAllowed = !parts.some(({ denies }) => denies)
    if (isAllowed) for (const { log } of parts) log.times.push(atMs)
    const second = Math.floor(atMs / 1000) - since
    if (second < 0) continue
    if (parts.some(({ isFull, denies }) => isFull && !denies)) shadowDenied[second]!++
    const column = isAllowed ? allowed : denied
    column[second]!++
    usage.count(atMs)
    const decision = { allowed: isAllowed, cost: 1 } as Decision
    for (const { dimension, each, denies } of parts) usage.add(each, dimension, decision, denies)
  }
  const list = (by: 'requests' | 'denials') => mergeTop([usage.counts(by, seconds * 1000)], LISTED)
  return {
    history: { seconds: column().map((_, i) => i), allowed, denied, shadowDenied },
    requests: list('requests'),
    denials: list('denials'),
    limits: Object.entries(byDimension).map(([dimension, { limit, windowMs, shadow = false }]) => ({
      kind: 'slidingWindow',
      name: 'limit',
      ...(dimension !== '' && { dimension }),
      ...{ limit, window: windowMs, shadow },
    })),
  }
}

/** Generates arrivals from a seed. */
export class Crowd {
  readonly #random: () => number

  constructor(seed: number) {
    this.#random = randomSequence(seed)
  }

  /** A number from `least` up to `most`. */
  between(least: number, most: number): number {
    return least + Math.floor(this.#random() * (most - least + 1))
  }

  /** Requests at independent times. */
  random<Key extends Arrival['key']>(
    key: () => Key,
    requests: number,
    fromMs: number,
    toMs: number,
  ): Arrival[] {
    return Array.from({ length: requests }, () => ({
      atMs: fromMs + this.#random() * (toMs - fromMs),
      key: key(),
    }))
  }

  /** One request after the other, at this interval and up to a quarter off. */
  loop(key: string, everyMs: number, fromMs: number, toMs: number): Arrival[] {
    const arrivals: Arrival[] = []
    for (let atMs = fromMs; atMs < toMs; atMs += everyMs * (0.75 + this.#random() / 2))
      arrivals.push({ atMs, key })
    return arrivals
  }

  address(): string {
    return [this.between(1, 223), this.between(0, 255), this.between(0, 255), this.between(1, 254)].join('.')
  }
}
