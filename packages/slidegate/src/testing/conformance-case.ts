// Helpers for the conformance suite: cases, their scene, and shared assertions.
import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import type { Decision } from '../decision.ts'
import type { AnyKey, Keys } from '../key.ts'
import { createLimiter } from '../limiter/create-limiter.ts'
import { isForHandlers } from '../limiter/request.ts'
import type { DimensionOptions, Limiter, LimiterOptions } from '../limiter.ts'
import type { CalendarWindowOptions } from '../limits/calendar.ts'
import { fixedWindow } from '../limits/fixed-window.ts'
import type { Limit } from '../limits/limit.ts'
import { slidingCounter } from '../limits/sliding-counter.ts'
import { slidingWindow } from '../limits/sliding-window.ts'
import { tokenBucket } from '../limits/token-bucket.ts'
import type { Clock } from '../runtime/clock.ts'
import { outcomesOf } from '../stores/call.ts'
import type { Op, Outcome, Store } from '../stores/store.ts'

/** A clock that moves only when you move it. Pass it to a store: `memoryStore({ clock: clock.now })`. */
export class ManualClock {
  #nowMs: number

  /** Starts at an epoch time in milliseconds. */
  constructor(startMs = 1_700_000_000_000) {
    this.#nowMs = startMs
  }

  readonly now: Clock = () => this.#nowMs

  /** Moves the clock forward, or back if `ms` is negative. */
  advance(ms: number): void {
    this.#nowMs += ms
  }

  /** Sets the clock to an epoch time in milliseconds, forward or back. */
  set(nowMs: number): void {
    this.#nowMs = nowMs
  }
}

/** Creates a store that uses this clock and has no data from earlier cases. */
export type CreateStore = (options: { readonly clock: Clock }) => Store | Promise<Store>

/** A check of one guarantee that every store must provide. */
export interface ConformanceCase {
  readonly name: string
  /** Rejects with an `AssertionError` if the store breaks the guarantee. Closes the store. */
  run(createStore: CreateStore): Promise<void>
}

/** The tools for a case: its own store, that store's clock, and limiters. */
export interface Scene {
  /** Starts at a multiple of 10 s. */
  readonly clock: ManualClock
  /** Sends operations directly to the store. */
  apply(...ops: Op[]): Promise<readonly Outcome[]>
  /** Creates a limiter. Its name is the namespace for its keys. Default: `conformance`. */
  limiter(limits: readonly Limit[], name?: string): Limiter
  /** Creates a limiter with other options. */
  create<Dimension extends string>(options: DimensionOptions<Dimension>): Limiter<Keys<Dimension>>
  create(options: LimiterOptions): Limiter
}

/** Checks of guarantees, by the guarantee's name. */
export type Cases = Readonly<Record<string, (scene: Scene) => Promise<void>>>

/** Returns the cases for each item in a list. */
export function casesOfEach<T>(list: readonly T[], casesOf: (each: T) => Cases): Cases {
  return Object.assign({}, ...list.map(casesOf))
}

export async function play(check: (scene: Scene) => Promise<void>, createStore: CreateStore): Promise<void> {
  const clock = new ManualClock()
  const store = await createStore({ clock: clock.now })
  const limiters: { close(): void }[] = []
  const create: Scene['create'] = (options: object) => {
    // A long timeout, so that no case fails because the machine is slow.
    const made = createLimiter({
      name: 'conformance',
      timeoutMs: 30_000,
      warnings: false,
      ...options,
      store,
    } as never)
    limiters.push(made)
    return made as never
  }
  const limiter = (limits: readonly Limit[], name = 'conformance') => create({ limits, name })
  try {
    await check({ clock, apply: (...ops) => outcomesOf(store, ops), limiter, create })
  } finally {
    for (const made of limiters) made.close()
    store.close()
  }
}

/** Functions that create a limit of a given size, by kind. Includes only kinds that store sums of units. */
export const SUMS: Readonly<Record<string, (limit: number) => Limit>> = {
  'sliding window': (limit) => slidingWindow({ limit, window: '10s' }),
  'fixed window': (limit) => fixedWindow({ limit, window: '10s' }),
  'fixed window from the first hit': (limit) => fixedWindow({ limit, window: '10s', align: 'first-hit' }),
  'sliding counter': (limit) => slidingCounter({ limit, window: '10s' }),
  'token bucket': (limit) => tokenBucket({ capacity: limit, refill: 3, interval: '10s' }),
}

/** Like {@link SUMS}, plus the kinds that store each request separately. */
export const KINDS: Readonly<Record<string, (limit: number) => Limit>> = {
  ...SUMS,
  'sliding window in a sorted set': (limit) => slidingWindow({ limit, window: '10s', log: 'zset' }),
  'sliding window in a stream': (limit) => slidingWindow({ limit, window: '10s', log: 'stream' }),
}

/** Imported lazily, since only the calendar cases need the `temporal-polyfill` package. */
export async function calendarWindow(options: CalendarWindowOptions): Promise<Limit> {
  const calendar = await import('../limits/calendar-window.ts')
  return calendar.calendarWindow(options)
}

export function admits<Key extends AnyKey = string>(
  limiter: Limiter<Key>,
  key: Key,
  cost = 1,
): Promise<Decision> {
  return decides(limiter, key, cost, true)
}

export function denies<Key extends AnyKey = string>(
  limiter: Limiter<Key>,
  key: Key,
  cost = 1,
): Promise<Decision> {
  return decides(limiter, key, cost, false)
}

async function decides<Key extends AnyKey>(
  limiter: Limiter<Key>,
  key: Key,
  cost: number,
  allowed: boolean,
): Promise<Decision> {
  // A slot needs an id, so that it can be released.
  const isHeld = limiter.limits.some(isForHandlers)
  const decision = await limiter.consume(key, isHeld ? { cost, requestId: randomUUID() } : { cost })
  const should = `a cost of ${cost} for the key ${JSON.stringify(key)} should be ${allowed ? 'admitted' : 'denied'}`
  assert.equal(decision.allowed, allowed, `${should}, not ${JSON.stringify(decision)}`)
  return decision
}

/** Returns the remaining units, as reported by a peek. */
export async function left<Key extends AnyKey = string>(limiter: Limiter<Key>, key: Key): Promise<number> {
  return (await limiter.peek(key)).remaining
}

/** Returns the remaining units of each limit. */
export async function leftOfEach<Key extends AnyKey = string>(
  limiter: Limiter<Key>,
  key: Key,
): Promise<number[]> {
  return remainingOf(await limiter.peek(key))
}

export function remainingOf({ limits }: Decision): number[] {
  return limits.map(({ remaining }) => remaining)
}

/** Checks that the key is denied for this many milliseconds and is then admitted. Moves the clock. */
export async function opensIn<Key extends AnyKey = string>(
  scene: Scene,
  ms: number,
  limiter: Limiter<Key>,
  key: Key,
  cost = 1,
): Promise<void> {
  scene.clock.advance(ms - 1)
  await denies(limiter, key, cost)
  scene.clock.advance(1)
  await admits(limiter, key, cost)
}
