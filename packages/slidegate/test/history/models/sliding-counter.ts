import type { Limit } from '../../../src/index.ts'
import type { LogModel, Request } from './log-model.ts'

const MOST = 2n ** 52n

/** The units of a window and of the one before. The weight of the latter falls in each grain. */
export class SlidingCounterModel implements LogModel {
  readonly #windowMs: number
  #precisionMs = 1
  #grains = 1n
  #startMs = 0
  #current = 0n
  #previous = 0n
  #sinceMs = 0

  constructor(windowMs: number) {
    this.#windowMs = windowMs
  }

  under(limits: readonly Limit[]): void {
    this.#precisionMs = Math.max(...limits.map(({ limit }) => finestPrecision(limit, this.#windowMs)))
    this.#grains = BigInt(Math.ceil(this.#windowMs / this.#precisionMs))
  }

  copy(): SlidingCounterModel {
    const copied = new SlidingCounterModel(this.#windowMs)
    copied.#precisionMs = this.#precisionMs
    copied.#grains = this.#grains
    copied.#startMs = this.#startMs
    copied.#current = this.#current
    copied.#previous = this.#previous
    copied.#sinceMs = this.#sinceMs
    return copied
  }

  newest(): number {
    return this.#startMs
  }

  restamp(nowMs: number): void {
    this.#startMs = this.#startOf(nowMs)
    this.#current = this.#saturated(this.#current + this.#previous)
    this.#previous = 0n
    this.#sinceMs = Math.min(this.#sinceMs, nowMs)
  }

  used(_limit: Limit, nowMs: number): number {
    const { current, previous } = this.#at(nowMs)
    const elapsed = BigInt(Math.floor((nowMs - this.#startOf(nowMs)) / this.#precisionMs))
    const weighted = previous * (this.#grains - elapsed)
    const roundedUp = (weighted + this.#grains - 1n) / this.#grains
    return Number(current + roundedUp)
  }

  need(_nowMs: number, request: Request): number {
    return request.units
  }

  charge(_limits: readonly Limit[], nowMs: number, { units }: Request): void {
    const { current, previous } = this.#at(nowMs)
    if (current + previous === 0n) this.#sinceMs = nowMs
    this.#startMs = this.#startOf(nowMs)
    this.#current = this.#saturated(current + BigInt(units))
    this.#previous = previous
  }

  refund(nowMs: number, atMs: number, { units }: Request): number {
    if (atMs < this.#sinceMs) return 0
    const { current, previous } = this.#at(nowMs)
    const startMs = this.#startOf(nowMs)
    const madeMs = this.#startOf(atMs)
    const isCurrent = madeMs === startMs
    const held = isCurrent ? current : madeMs === startMs - this.#windowMs ? previous : 0n
    const returned = BigInt(units) < held ? BigInt(units) : held
    if (returned === 0n) return 0
    this.#current = isCurrent ? current - returned : current
    this.#previous = isCurrent ? previous : previous - returned
    this.#startMs = this.#current + this.#previous === 0n ? 0 : startMs
    return Number(returned)
  }

  /** Returns the units in the current window and in the one before, at this moment. */
  #at(nowMs: number): { readonly current: bigint; readonly previous: bigint } {
    const windowsSince = (this.#startOf(nowMs) - this.#startMs) / this.#windowMs
    const [current, previous] = [this.#saturated(this.#current), this.#saturated(this.#previous)]
    if (windowsSince === 0) return { current, previous }
    return { current: 0n, previous: windowsSince === 1 ? current : 0n }
  }

  #saturated(units: bigint): bigint {
    const most = MOST / this.#grains
    return units < most ? units : most
  }

  #startOf(ms: number): number {
    return ms - (ms % this.#windowMs)
  }
}

/** Returns the finest precision at which all sums stay exact. */
function finestPrecision(limit: number, windowMs: number): number {
  for (let decade = 1; ; decade *= 10) {
    for (const step of [1, 2, 5]) {
      const grains = Math.ceil(windowMs / (decade * step))
      if (BigInt(limit) * BigInt(grains) <= MOST) return decade * step
    }
  }
}
