import type { Decision, Limit } from 'slidegate'
import { FullestWindow } from './fullest-window.ts'
import type { LoggedRequest } from './request.ts'
import { type Caller, TopCallers } from './top-callers.ts'

export interface LimitResult {
  readonly name: string
  readonly limit: number
  readonly windowMs: number
  /** Requests that this limit had no room for. */
  readonly denied: number
  /** Admitted requests of one caller in the fullest window of that length, wherever it begins. */
  readonly fullestWindow: number
  readonly percentOfLimit: number
}

/** Counts what a limiter decided. */
export class Tally {
  admitted = 0
  denied = 0
  readonly #limits: readonly { readonly limit: Limit; readonly fullest: FullestWindow; denied: number }[]
  readonly #callers = new TopCallers()

  constructor(limits: readonly Limit[]) {
    this.#limits = limits.map((limit) => ({ limit, fullest: new FullestWindow(limit.windowMs), denied: 0 }))
  }

  add({ key, timeMs }: LoggedRequest, decision: Decision): void {
    if (decision.allowed) {
      this.admitted++
      for (const { fullest } of this.#limits) fullest.add(key, timeMs)
      return
    }
    this.denied++
    this.#callers.add(key)
    this.#limits.forEach((counted, i) => {
      if (!decision.limits[i]!.allowed) counted.denied++
    })
  }

  /** The callers that were denied most. */
  topDenied(count: number): Caller[] {
    return this.#callers.top(count)
  }

  /** Callers forgotten for want of room: what is said of the fullest windows may be too low. */
  get forgotten(): number {
    return Math.max(...this.#limits.map(({ fullest }) => fullest.forgotten))
  }

  limits(): LimitResult[] {
    return this.#limits.map(({ limit: { name, limit, windowMs }, fullest, denied }) => {
      const percentOfLimit = Number(((100 * fullest.count) / limit).toFixed(1))
      return { name, limit, windowMs, denied, fullestWindow: fullest.count, percentOfLimit }
    })
  }
}
