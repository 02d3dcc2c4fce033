// Counts a limiter's decisions.

import type { Limit } from 'slidegate'
import type { Decided } from '../decider.ts'
import type { LoggedRequest } from '../log/parse-line.ts'
import { type Caller, Callers, TopCallers } from './callers.ts'
import { FullestWindow } from './fullest-window.ts'
import { OverTime } from './over-time.ts'

export interface LimitResult {
  readonly name: string
  readonly limit: number
  readonly windowMs: number
  /** Requests that this limit denied. */
  readonly denied: number
  /** The most units admitted for one caller in any window of the limit's length. */
  readonly fullestWindow: number
  readonly percentOfLimit: number
}

export class Results {
  admitted = 0
  denied = 0
  readonly #limits: readonly { readonly limit: Limit; readonly fullest: FullestWindow; denied: number }[]
  readonly #denied = new TopCallers()
  readonly overTime: OverTime
  /** Counts by caller, if the report needs them. */
  readonly callers: Callers | undefined

  constructor(limits: readonly Limit[], withCallers = false) {
    this.overTime = new OverTime(limits.length)
    this.callers = withCallers ? new Callers(limits.length) : undefined
    this.#limits = limits.map((limit) => ({ limit, fullest: new FullestWindow(limit.windowMs), denied: 0 }))
  }

  add({ key, timeMs, cost }: LoggedRequest, decision: Decided): void {
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

  topDenied(count: number): Caller[] {
    return this.#denied.top(count)
  }

  /** Number of callers dropped because memory was full. If there are any, `fullestWindow` may be too low. */
  get forgotten(): number {
    return Math.max(0, ...this.#limits.map(({ fullest }) => fullest.forgotten))
  }

  limits(): LimitResult[] {
    return this.#limits.map(({ limit: { name, limit, windowMs }, fullest, denied }) => {
      const percentOfLimit = Number(((100 * fullest.count) / limit).toFixed(1))
      return { name, limit, windowMs, denied, fullestWindow: fullest.count, percentOfLimit }
    })
  }
}
