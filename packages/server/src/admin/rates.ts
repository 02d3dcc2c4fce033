// Counts a limiter's decisions per second.

import type { Decision, Source } from 'slidegate'
import type { SpanUsage } from './api-types.ts'

/** The spans to report, in seconds. */
const SPANS = [1, 10, 60, 300] as const

const SOURCES: readonly Source[] = ['store', 'lease', 'denyCache', 'fallback', 'failOpen', 'failClosed']

/** The columns for each second: allowed by source, denied by source, denied by shadow limits. */
const DENIED = SOURCES.length
const SHADOW = 2 * SOURCES.length
const WIDTH = SHADOW + 1

/** Number of seconds to keep: the longest span, plus the current second. */
const SECONDS = 300 + 1

/** Counts for the last full seconds, as plain JSON. */
export interface SpanCounts {
  /** The number of seconds counted; fewer than the span if the process started later. */
  readonly seconds: number
  readonly counts: readonly number[]
}

/** Counts by second, latest first, as plain JSON. */
export interface SecondCounts {
  /** The last full second, in epoch seconds. The first entry in each list is for this second. */
  readonly latest: number
  readonly allowed: readonly number[]
  readonly denied: readonly number[]
  readonly shadowDenied: readonly number[]
  /** Requests decided without the store. */
  readonly withoutStore: readonly number[]
}

/** Decisions in the last minute, or since the process started if that is later. */
export interface MinuteRates {
  readonly seconds: number
  readonly allowed: number
  readonly denied: number
  readonly shadowDenied: number
}

/** A limiter's counts in one minute. */
export interface MinuteCounts {
  readonly allowed: number
  readonly denied: number
  /** Units charged to allowed requests. */
  readonly units: number
  readonly shadowDenied: number
}

/** Counts a limiter's decisions per second, in 16 KB of memory. */
export class Rates {
  readonly #counts = new Uint32Array(SECONDS * WIDTH)
  #minute = { allowed: 0, denied: 0, units: 0, shadowDenied: 0 }
  readonly #since: number
  #second: number

  /** @param sinceMs when counting started; earlier counts are unknown, not zero */
  constructor(sinceMs: number) {
    this.#since = Math.ceil(sinceMs / 1000)
    this.#second = this.#since
  }

  add({ allowed, cost, source, limits }: Decision, nowMs: number): void {
    this.#goOnTo(nowMs)
    const minute = this.#minute
    if (allowed) {
      minute.allowed++
      minute.units += cost
    } else minute.denied++
    const row = (this.#second % SECONDS) * WIDTH
    this.#counts[row + (allowed ? 0 : DENIED) + SOURCES.indexOf(source)]!++
    for (let i = 0; i < limits.length; i++) {
      const limit = limits[i]!
      if (!limit.shadow || limit.allowed) continue
      this.#counts[row + SHADOW]!++
      minute.shadowDenied++
      return
    }
  }

  /** Returns the counts since the last call. */
  takeMinute(): MinuteCounts {
    const minute = this.#minute
    this.#minute = { allowed: 0, denied: 0, units: 0, shadowDenied: 0 }
    return minute
  }

  /** Returns the decisions in the last 60 full seconds, or fewer soon after the start. */
  lastMinute(nowMs: number): MinuteRates {
    this.#goOnTo(nowMs)
    const seconds = Math.min(60, this.#second - this.#since)
    let allowed = 0
    let denied = 0
    let shadowDenied = 0
    for (let back = 1; back <= seconds; back++) {
      const row = ((this.#second - back) % SECONDS) * WIDTH
      for (let i = 0; i < DENIED; i++) allowed += this.#counts[row + i]!
      for (let i = DENIED; i < SHADOW; i++) denied += this.#counts[row + i]!
      shadowDenied += this.#counts[row + SHADOW]!
    }
    return { seconds, allowed, denied, shadowDenied }
  }

  /** Returns the counts for each of {@link SPANS}. */
  spans(nowMs: number): readonly SpanCounts[] {
    this.#goOnTo(nowMs)
    const counts = new Array<number>(WIDTH).fill(0)
    let seconds = 0
    return SPANS.map((span) => {
      for (; seconds < Math.min(span, this.#second - this.#since); seconds++) {
        const row = ((this.#second - seconds - 1) % SECONDS) * WIDTH
        for (let i = 0; i < WIDTH; i++) counts[i]! += this.#counts[row + i]!
      }
      return { seconds, counts: [...counts] }
    })
  }

  /** Returns the summed counts of several limiters for the last full seconds. */
  static seconds(all: readonly Rates[], nowMs: number, most: number, sinceMs: number): SecondCounts {
    for (const rates of all) rates.#goOnTo(nowMs)
    const latest = Math.floor(nowMs / 1000) - 1
    const length = Math.max(0, Math.min(most, SECONDS - 1, latest + 1 - Math.ceil(sinceMs / 1000)))
    const column = (from: number, to: number) =>
      Array.from({ length }, (_, back) => {
        const row = ((latest - back) % SECONDS) * WIDTH
        return all.reduce((sum, rates) => {
          for (let i = from; i < to; i++) sum += rates.#counts[row + i]!
          return sum
        }, 0)
      })
    const without = SOURCES.indexOf('fallback')
    const columns = [column(0, DENIED), column(DENIED, SHADOW), column(SHADOW, WIDTH)] as const
    const [allowed, denied, shadowDenied] = columns
    const [some, others] = [column(without, DENIED), column(DENIED + without, SHADOW)]
    return { latest, allowed, denied, shadowDenied, withoutStore: some.map((count, i) => count + others[i]!) }
  }

  #goOnTo(nowMs: number): void {
    const second = Math.floor(nowMs / 1000)
    if (second <= this.#second) return
    const passed = Math.min(second - this.#second, SECONDS)
    for (let i = 0; i < passed; i++) {
      const row = ((second - i) % SECONDS) * WIDTH
      this.#counts.fill(0, row, row + WIDTH)
    }
    this.#second = second
  }
}

/** @param processes the spans from each process */
export function usageOf(processes: readonly (readonly SpanCounts[])[]): SpanUsage[] {
  return SPANS.map((spanSeconds, span) => {
    const seconds = Math.max(0, ...processes.map((spans) => spans[span]!.seconds))
    const sum = (i: number) => processes.reduce((all, spans) => all + (spans[span]!.counts[i] ?? 0), 0)
    const perSecond = (count: number) => (seconds === 0 ? 0 : Math.round((count / seconds) * 1000) / 1000)
    const allowed = SOURCES.reduce((all, _, i) => all + sum(i), 0)
    const denied = SOURCES.reduce((all, _, i) => all + sum(DENIED + i), 0)
    return {
      ...{ spanSeconds, seconds, allowed, denied, shadowDenied: sum(SHADOW) },
      ...{ allowedPerSecond: perSecond(allowed), deniedPerSecond: perSecond(denied) },
      perSecondBySource: Object.fromEntries(
        SOURCES.map((source, i) => [source, perSecond(sum(i) + sum(DENIED + i))]),
      ) as Record<Source, number>,
    }
  })
}
