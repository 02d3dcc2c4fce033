import type { Decision } from '../../decision.ts'
import type { Part } from '../../stores/store.ts'
import type { WaitRequest } from './wait-options.ts'

/** One who waits. */
export class Waiter {
  readonly key: string
  readonly request: WaitRequest
  /** Its keys, and the limits that are in force when it is asked. */
  readonly parts: () => readonly Part[]
  /** Which one of all that have come. */
  readonly place: number
  /** Since when it waits, and until when, by `performance.now()`. */
  readonly sinceMs: number
  readonly untilMs: number
  isSettled = false
  readonly promise: Promise<Decision>
  #resolve!: (decision: Decision) => void
  #reject!: (error: unknown) => void

  constructor(key: string, request: WaitRequest, parts: () => readonly Part[], place: number) {
    this.key = key
    this.request = request
    this.parts = parts
    this.place = place
    this.sinceMs = performance.now()
    this.untilMs = this.sinceMs + request.maxWaitMs
    this.promise = new Promise((resolve, reject) => {
      this.#resolve = resolve
      this.#reject = reject
    })
  }

  resolve(decision: Decision): void {
    this.isSettled = true
    this.#resolve(decision)
  }

  reject(error: unknown): void {
    this.isSettled = true
    this.#reject(error)
  }
}

/** Nobody overtakes. */
export function comesBefore(one: Waiter, other: Waiter): boolean {
  const [priority, otherPriority] = [one.request.priority, other.request.priority]
  return priority === otherPriority ? one.place < other.place : priority > otherPriority
}

export function endsBefore(one: Waiter, other: Waiter): boolean {
  return one.untilMs < other.untilMs
}
