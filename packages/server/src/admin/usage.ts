// Counts each limiter's decisions in this process, per second and per key.

import { setImmediate } from 'node:timers/promises'
import type { AnyKey, Decision } from 'slidegate'
import type { KeyCounts } from './history/key-counts.ts'
import type { WatchedOfLimiter } from './history/watched-keys.ts'
import { shortKey } from './keys.ts'
import { type DenialTimes, LastDenials } from './last-denials.ts'
import { AT_A_TIME, type RenameKey, renameKeys } from './merge-keys.ts'
import { type MinuteCounts, type MinuteRates, Rates, type SecondCounts, type SpanCounts } from './rates.ts'
import { type CallerSketch, HALF_MS, type Ranking, SlidingKeys, type TopCounts } from './sliding-keys.ts'
import type { Every } from './timer.ts'

/** Maximum number of limiters with counts. Beyond that, a new limiter replaces one that has been idle for `IDLE_MS`. */
const MAX_LIMITERS = 1024
const IDLE_MS = 2 * HALF_MS

interface LimiterUsage {
  readonly rates: Rates
  readonly keys: SlidingKeys
  askedAtMs: number
}

/** Counts for a limiter and its keys in one minute. Each key is named by its dimension, `=` and the key. */
export interface LimiterMinute {
  readonly limiter: string
  readonly counts: MinuteCounts
  readonly keys: ReadonlyMap<string, KeyCounts>
}

/** How often the clock is read. A decision counts as made at the time of the last read. */
const TICK_MS = 50

/**
 * Counts this process's decisions, and their keys.
 *
 * Memory is bounded: about 270 KB per limiter, plus up to 2,048 keys of at most 256 characters.
 */
export class Usage {
  readonly #now: () => number
  readonly #sinceMs: number
  readonly #limiters = new Map<string, LimiterUsage>()
  readonly #lastDenials = new LastDenials()
  readonly #stop: () => void
  readonly #isTicking: boolean
  #nowMs: number
  #watched: ReadonlyMap<string, WatchedOfLimiter> = new Map()
  /** The limiter of the last decision. The next decision is often for the same limiter. */
  #last: { readonly name: string; readonly usage: LimiterUsage } | undefined

  /**
   * @param now a monotonic clock, in epoch milliseconds
   * @param every schedules periodic reads of the clock, because reading it takes longer than counting. Default: the
   * clock is read at each decision
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
    if (typeof key === 'string') {
      this.#countKey(usage, limiter, '', key, decision)
      return
    }
    for (const dimension of Object.keys(key)) {
      const each = key[dimension]
      if (typeof each === 'string') this.#countKey(usage, limiter, dimension, each, decision)
    }
  }

  /** Sets the keys whose requests are counted exactly, by limiter. */
  watch(watched: ReadonlyMap<string, WatchedOfLimiter>): void {
    this.#watched = watched
    for (const [name, usage] of this.#limiters) usage.keys.watched.watch(watched.get(name))
  }

  /** Yields the counts since the last call for each limiter that wasn't idle. */
  *takeMinute(): Generator<LimiterMinute, void, undefined> {
    for (const [limiter, { rates, keys }] of Array.from(this.#limiters)) {
      const counts = rates.takeMinute()
      if (counts.allowed + counts.denied === 0) continue
      yield { limiter, counts, keys: keys.takeMinute(this.#tick()) }
    }
  }

  /** Returns when a key was last denied. @param word see `denialWord` */
  lastDenialsOf(word: string): DenialTimes {
    return this.#lastDenials.of(word)
  }

  close(): void {
    this.#stop()
  }

  /** Returns the limiters and Envoy domains with counts. */
  names(): readonly string[] {
    return Array.from(this.#limiters.keys())
  }

  spansOf(limiter: string): readonly SpanCounts[] {
    return (this.#limiters.get(limiter)?.rates ?? new Rates(this.#sinceMs)).spans(this.#tick())
  }

  /** Returns the summed counts of several limiters for the last full seconds. Ignores limiters without counts. */
  secondsOf(limiters: readonly string[], most: number): SecondCounts {
    const nowMs = this.#tick()
    const rates = limiters.flatMap((limiter) => this.#limiters.get(limiter)?.rates ?? [])
    return Rates.seconds(rates, nowMs, most, this.#sinceMs)
  }

  lastMinuteOf(limiter: string): MinuteRates {
    const nowMs = this.#tick()
    return (this.#limiters.get(limiter)?.rates ?? new Rates(nowMs)).lastMinute(nowMs)
  }

  topOf(limiter: string, by: Ranking): TopCounts {
    const keys = this.#limiters.get(limiter)?.keys
    return keys?.counts(by, this.#tick()) ?? { spanMs: 0, summaries: [], callers: '' }
  }

  /**
   * Returns the callers for each limiter. Lets pending requests run between limiters.
   *
   * @param renaming returns a function that renames a limiter's keys, or undefined to keep them
   */
  async callers(
    renaming: (limiter: string) => RenameKey | undefined = () => undefined,
  ): Promise<Readonly<Record<string, CallerSketch>>> {
    const sketches: [string, CallerSketch][] = []
    for (const [name, { keys }] of Array.from(this.#limiters)) {
      const callers = keys.callers(this.#tick())
      const rename = renaming(name)
      sketches.push([name, rename ? { ...callers, top: renameKeys(callers.top, rename) } : callers])
      if (sketches.length % AT_A_TIME === 0) await setImmediate()
    }
    return Object.fromEntries(sketches)
  }

  #countKey(
    { keys }: LimiterUsage,
    limiter: string,
    dimension: string,
    key: string,
    decision: Decision,
  ): void {
    const short = shortKey(key)
    // With `failClosed`, a request is denied because of the store, and not because of its key.
    const isDenied =
      !decision.allowed &&
      decision.source !== 'failClosed' &&
      (dimension === '' || isBlamed(dimension, decision))
    if (isDenied && decision.blockedMs !== undefined) keys.watched.block(short, dimension)
    keys.add(short, dimension, decision, isDenied)
    if (isDenied) this.#lastDenials.add(limiter, dimension, short, this.#nowMs)
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
    usage.keys.watched.watch(this.#watched.get(limiter))
    this.#limiters.set(limiter, usage)
    return usage
  }

  /** Checks one limiter per call, in rotation, and removes it if it is idle. */
  #forgetOne(nowMs: number): boolean {
    const [name, usage] = this.#limiters.entries().next().value!
    this.#limiters.delete(name)
    this.#last = undefined
    const isIdle = nowMs - usage.askedAtMs >= IDLE_MS
    if (!isIdle) this.#limiters.set(name, usage)
    return isIdle
  }
}

/** Returns whether a limit or ban in this dimension denied the request. Returns true if that's unknown. */
function isBlamed(dimension: string, { deniedBy }: Decision): boolean {
  if (deniedBy.length === 0) return true
  const own = `${dimension}.`
  return deniedBy.some((name) => name.startsWith(own))
}

function monotonicEpochMs(): number {
  return performance.timeOrigin + performance.now()
}
