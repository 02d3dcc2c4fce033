// Counts what a limiter decided.

import type { Decision, Limit } from 'slidegate'
import type { LoggedRequest } from '../log/parse-line.ts'
import { type Caller, Callers, TopCallers } from './callers.ts'
import { FullestWindow } from './fullest-window.ts'
import { OverTime } from './over-time.ts'

export interface LimitResult {
  readonly name: string
  readonly limit: number
  readonly windowMs: number
  /** Requests that this limit had no room for. */
  readonly denied: number
  /** Admitted units of one caller in the fullest window of that length, wherever it begins. */
  readonly fullestWindow: number
  readonly percentOfLimit: number
}

/** Counts what a limiter decided. */
export class Tally {
  admitted = 0
  denied = 0
  readonly #limits: readonly { readonly limit: Limit; readonly fullest: FullestWindow; denied: number }[]
  readonly #denied = new TopCallers()
  readonly overTime: OverTime
  /** Each of them, where a report will tell of them. */
  readonly callers: Callers | undefined

  constructor(limits: readonly Limit[], withCallers = false) {
    this.overTime = new OverTime(limits.length)
    this.callers = withCallers ? new Callers(limits.length) : undefined
    this.#limits = limits.map((limit) => ({ limit, fullest: new FullestWindow(limit.windowMs), denied: 0 }))
  }

  add({ key, timeMs, cost }: LoggedRequest, decision: Decision): void {
    if (decision.allowed) {
      this.admitted++
      const within = this.#limits.map(({ fullest }) => fullest.add(key, timeMs, cost))
      this.overTime.admitted(timeMs, within)
      this.callers?.admitted(key, within)
      return
    }
    this.denied++
    this.#denied.add(key)
    this.overTime.denied(timeMs)
    this.callers?.denied(key)
    this.#limits.forEach((counted, i) => {
      if (!decision.limits[i]!.allowed) counted.denied++
    })
  }

  /** The callers that were denied most. */
  topDenied(count: number): Caller[] {
    return this.#denied.top(count)
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
