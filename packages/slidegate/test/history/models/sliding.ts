import type { Limit } from '../../../src/index.ts'
import type { LogModel, Request, Stamped } from './log-model.ts'

/** The packed log. A charge counts until its whole grain has left the window. */
export class SlidingModel implements LogModel {
  readonly #precisionMs: number
  #events: readonly Stamped[] = []
  /** How long charges are kept: the longest time that any commit needed. */
  #keepMs = 0
  #sinceMs = 0

  constructor(precisionMs: number) {
    this.#precisionMs = precisionMs
  }

  copy(): SlidingModel {
    const copied = new SlidingModel(this.#precisionMs)
    copied.#events = this.#events
    copied.#keepMs = this.#keepMs
    copied.#sinceMs = this.#sinceMs
    return copied
  }

  newest(): number {
    return Math.max(0, ...this.#events.map(({ stampMs }) => stampMs))
  }

  restamp(nowMs: number): void {
    const units = this.#events.reduce((sum, event) => sum + event.units, 0)
    this.#events = [{ stampMs: this.#stampOf(nowMs), units }]
    this.#sinceMs = Math.min(this.#sinceMs, nowMs)
  }

  used(limit: Limit, nowMs: number): number {
    return this.charges(limit, nowMs).reduce((sum, { units }) => sum + units, 0)
  }

  charges(limit: Limit, nowMs: number): readonly Stamped[] {
    const countsMs = Math.min(this.#neededMs(limit), this.#keepMs)
    return this.#events.filter(({ stampMs }) => nowMs < stampMs + countsMs)
  }

  need(_nowMs: number, request: Request): number {
    return request.units
  }

  charge(limits: readonly Limit[], nowMs: number, { units }: Request): void {
    // Filters by the previous retention time, before it becomes longer.
    this.#events = this.#events.filter(({ stampMs }) => nowMs < stampMs + this.#keepMs)
    if (this.#events.length === 0) {
      this.#keepMs = 0
      this.#sinceMs = nowMs
    }
    this.#keepMs = Math.max(this.#keepMs, ...limits.map((limit) => this.#neededMs(limit)))
    this.#events = [...this.#events, { stampMs: this.#stampOf(nowMs), units }]
  }

  refund(nowMs: number, atMs: number, { units }: Request): number {
    const stamp = this.#stampOf(atMs)
    if (atMs < this.#sinceMs || nowMs >= stamp + this.#keepMs) return 0
    let left = units
    const reduced = this.#events.map(({ stampMs, units: held }) => {
      const taken = stampMs === stamp ? Math.min(left, held) : 0
      left -= taken
      return { stampMs, units: held - taken }
    })
    this.#events = reduced.filter((event) => event.units > 0)
    return units - left
  }

  #neededMs(limit: Limit): number {
    return limit.windowMs + this.#precisionMs - 1
  }

  #stampOf(ms: number): number {
    return ms - (ms % this.#precisionMs)
  }
}
