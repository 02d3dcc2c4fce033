// What each limiter decides in this process: rates and keys.

import { setImmediate } from 'node:timers/promises'
import type { AnyKey, Decision } from 'slidegate'
import { shortKey } from './keys.ts'
import { AT_A_TIME, type RenameKey, renameKeys } from './merge-keys.ts'
import { Rates, type SecondCounts, type SpanCounts } from './rates.ts'
import { type CallerSketch, HALF_MS, type Ranking, SlidingKeys, type TopCounts } from './sliding-keys.ts'
import type { Every } from './timer.ts'

/** Limiters of which anything is known: of one more nothing is, until one of these was not asked for so long. */
const MAX_LIMITERS = 1024
const IDLE_MS = 2 * HALF_MS

interface LimiterUsage {
  readonly rates: Rates
  readonly keys: SlidingKeys
  askedAtMs: number
}

/** How often the clock is read: what is decided in between is counted as of then. */
const TICK_MS = 50

/**
 * What is decided in this process, live: how much, and whose requests. Memory is bounded, whatever keys there are: of a limiter
 * some 250 KB, and with all counters taken 2,048 keys, of 256 characters at most.
 */
export class Usage {
  readonly #now: () => number
  readonly #sinceMs: number
  readonly #limiters = new Map<string, LimiterUsage>()
  readonly #stop: () => void
  readonly #isTicking: boolean
  #nowMs: number
  /** The one that was asked last: most often it is asked again. */
  #last: { readonly name: string; readonly usage: LimiterUsage } | undefined

  /**
   * @param now a monotonic clock, in epoch milliseconds
   * @param every keeps what it says, for to read it takes longer than to count
   */
  constructor(now: () => number = monotonicEpochMs, every?: Every) {
    this.#now = now
    this.#nowMs = now()
    this.#sinceMs = this.#nowMs
    this.#stop = every?.(TICK_MS, () => this.#tick()) ?? (() => {})
    this.#isTicking = every !== undefined
  }

  record(limiter: string, key: AnyKey, decision: Decision): void {
    if (!this.#isTicking) this.#tick()
    const nowMs = this.#nowMs
    const usage = this.#usageOf(limiter, nowMs)
    if (usage === undefined) return
    usage.askedAtMs = nowMs
    usage.rates.add(decision, nowMs)
    usage.keys.count(nowMs)
    const { allowed } = decision
    if (typeof key === 'string') {
      usage.keys.add(shortKey(key), '', !allowed)
      return
    }
    for (const dimension of Object.keys(key)) {
      const each = key[dimension]
      if (typeof each !== 'string') continue
      usage.keys.add(shortKey(each), dimension, !allowed && isBlamed(dimension, decision))
    }
  }

  close(): void {
    this.#stop()
  }

  /** Of whom anything is known: limiters, and domains of Envoy. */
  names(): readonly string[] {
    return Array.from(this.#limiters.keys())
  }

  spansOf(limiter: string): readonly SpanCounts[] {
    return (this.#limiters.get(limiter)?.rates ?? new Rates(this.#sinceMs)).spans(this.#tick())
  }

  /** The last whole seconds of some limiters together, the latest first: what nobody has asked is not counted. */
  secondsOf(limiters: readonly string[], most: number): SecondCounts {
    const nowMs = this.#tick()
    const rates = limiters.flatMap((limiter) => this.#limiters.get(limiter)?.rates ?? [])
    return Rates.seconds(rates, nowMs, most, this.#sinceMs)
  }

  topOf(limiter: string, by: Ranking): TopCounts {
    const keys = this.#limiters.get(limiter)?.keys
    return keys?.counts(by, this.#tick()) ?? { spanMs: 0, summaries: [], callers: '' }
  }

  /**
   * Of each limiter; requests are answered in between.
   *
   * @param renaming by limiter: how its keys are told; where there is none, as they are
   */
  async callers(
    renaming: (limiter: string) => RenameKey | undefined = () => undefined,
  ): Promise<Readonly<Record<string, CallerSketch>>> {
    const told: [string, CallerSketch][] = []
    for (const [name, { keys }] of Array.from(this.#limiters)) {
      const callers = keys.callers(this.#tick())
      const rename = renaming(name)
      told.push([name, rename ? { ...callers, top: renameKeys(callers.top, rename) } : callers])
      if (told.length % AT_A_TIME === 0) await setImmediate()
    }
    return Object.fromEntries(told)
  }

  #tick(): number {
    this.#nowMs = this.#now()
    return this.#nowMs
  }

  #usageOf(limiter: string, nowMs: number): LimiterUsage | undefined {
    if (this.#last?.name === limiter) return this.#last.usage
    const usage = this.#limiters.get(limiter) ?? this.#add(limiter, nowMs)
    this.#last = usage && { name: limiter, usage }
    return usage
  }

  #add(limiter: string, nowMs: number): LimiterUsage | undefined {
    if (this.#limiters.size >= MAX_LIMITERS && !this.#forgetOne(nowMs)) return undefined
    const usage = { rates: new Rates(this.#sinceMs), keys: new SlidingKeys(nowMs), askedAtMs: nowMs }
    this.#limiters.set(limiter, usage)
    return usage
  }

  /** Looks at one of them, each time at another. */
  #forgetOne(nowMs: number): boolean {
    const [name, usage] = this.#limiters.entries().next().value!
    this.#limiters.delete(name)
    this.#last = undefined
    const isIdle = nowMs - usage.askedAtMs >= IDLE_MS
    if (!isIdle) this.#limiters.set(name, usage)
    return isIdle
  }
}

/** Whether a limit or ban of this dimension has denied, as far as that is known. */
function isBlamed(dimension: string, { deniedBy }: Decision): boolean {
  if (deniedBy.length === 0) return true
  const own = `${dimension}.`
  return deniedBy.some((name) => name.startsWith(own))
}

function monotonicEpochMs(): number {
  return performance.timeOrigin + performance.now()
}
