// Waiting requests, and a heap that keeps the first of them on top.

import type { Decision } from '../../decision.ts'
import { checkInteger, checkThat, isObject } from '../../errors.ts'
import type { KeyOptions } from '../../key.ts'
import type { Part } from '../../stores/store.ts'
import { COST_NAMES, parseCost } from '../request.ts'

/** Options for `wait` and `schedule`. */
export interface WaitOptions extends KeyOptions {
  /** Units that the request costs, a positive integer. Default: 1. */
  readonly cost?: number
  /**
   * Maximum wait in milliseconds, an integer from 0 to 2^31 - 1. Default: 30,000.
   *
   * Rejects immediately if it is certain that the wait would exceed this. With 0, the request is admitted now or not at
   * all. A store call in flight isn't interrupted.
   */
  readonly maxWaitMs?: number
  /** Ends the wait. An aborted request isn't charged. */
  readonly signal?: AbortSignal
  /** An integer. Waiters in this process are admitted by priority, highest first, then by arrival. Default: 0. */
  readonly priority?: number
}

export interface WaitRequest {
  readonly cost: number
  readonly maxWaitMs: number
  readonly priority: number
  readonly signal?: AbortSignal | undefined
}

const NAMES = { ...COST_NAMES, maxWaitMs: true, signal: true, priority: true } as const

const DEFAULT_MAX_WAIT_MS = 30_000

const MAX_WAIT_MS = 2 ** 31 - 1

export function parseWaitOptions(options: WaitOptions | undefined): WaitRequest {
  const cost = parseCost(options, NAMES)
  const { maxWaitMs = DEFAULT_MAX_WAIT_MS, priority = 0, signal } = options ?? {}
  checkInteger('maxWaitMs', maxWaitMs, 0, MAX_WAIT_MS)
  checkThat(Number.isSafeInteger(priority), 'priority', priority, 'an integer')
  checkThat(signal === undefined || isAbortSignal(signal), 'signal', signal, 'an AbortSignal')
  return { cost, maxWaitMs, priority, signal }
}

/** Checks the methods, because the signal may come from another realm or a polyfill. */
function isAbortSignal(signal: unknown): boolean {
  if (!isObject(signal)) return false
  const { aborted, addEventListener } = signal as Partial<AbortSignal>
  return typeof aborted === 'boolean' && typeof addEventListener === 'function'
}

export class Waiter {
  readonly key: string
  readonly request: WaitRequest
  /** Returns the request's keys and their current limits. */
  readonly parts: () => readonly Part[]
  readonly place: number
  /** When the waiter arrived and when it times out, by `performance.now()`. */
  readonly sinceMs: number
  readonly untilMs: number
  isSettled = false
  readonly promise: Promise<Decision>
  resolve!: (decision: Decision) => void
  reject!: (error: unknown) => void

  constructor(key: string, request: WaitRequest, parts: () => readonly Part[], place: number) {
    this.key = key
    this.request = request
    this.parts = parts
    this.place = place
    this.sinceMs = performance.now()
    this.untilMs = this.sinceMs + request.maxWaitMs
    this.promise = new Promise((resolve, reject) => {
      this.resolve = resolve
      this.reject = reject
    })
  }
}

/** Orders waiters by priority, then by arrival. */
export function comesBefore(one: Waiter, other: Waiter): boolean {
  const [priority, otherPriority] = [one.request.priority, other.request.priority]
  return priority === otherPriority ? one.place < other.place : priority > otherPriority
}

export function endsBefore(one: Waiter, other: Waiter): boolean {
  return one.untilMs < other.untilMs
}

export class Heap<Item> {
  readonly #isBefore: (one: Item, other: Item) => boolean
  #items: Item[] = []

  constructor(isBefore: (one: Item, other: Item) => boolean) {
    this.#isBefore = isBefore
  }

  get size(): number {
    return this.#items.length
  }

  peek(): Item | undefined {
    return this.#items[0]
  }

  push(item: Item): void {
    const items = this.#items
    let place = items.length
    items.push(item)
    while (place > 0) {
      const above = (place - 1) >> 1
      if (!this.#isBefore(item, items[above]!)) break
      items[place] = items[above]!
      place = above
    }
    items[place] = item
  }

  pop(): Item | undefined {
    const first = this.#items[0]
    const last = this.#items.pop()
    if (this.#items.length > 0) this.#sink(last!, 0)
    return first
  }

  /** Removes all items that don't match. */
  keep(isKept: (item: Item) => boolean): void {
    this.#items = this.#items.filter(isKept)
    for (let place = (this.#items.length >> 1) - 1; place >= 0; place--)
      this.#sink(this.#items[place]!, place)
  }

  #sink(item: Item, from: number): void {
    const items = this.#items
    let place = from
    for (let below = 2 * place + 1; below < items.length; below = 2 * place + 1) {
      if (below + 1 < items.length && this.#isBefore(items[below + 1]!, items[below]!)) below++
      if (!this.#isBefore(items[below]!, item)) break
      items[place] = items[below]!
      place = below
    }
    items[place] = item
  }
}
