// The scaffolding of the conformance suite: a case, its scene, and what the cases assert.
import assert from 'node:assert/strict'
import type { Decision } from '../decision.ts'
import type { AnyKey, Keys } from '../key.ts'
import { createLimiter } from '../limiter/create-limiter.ts'
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

/** A clock that stands still until it is moved: `memoryStore({ clock: clock.now })`. */
export class ManualClock {
  #nowMs: number

  /** Starts at an epoch time in milliseconds. */
  constructor(startMs = 1_700_000_000_000) {
    this.#nowMs = startMs
  }

  readonly now: Clock = () => this.#nowMs

  /** Moves it forward, or with a negative number back. */
  advance(ms: number): void {
    this.#nowMs += ms
  }

  /** Sets it to an epoch time in milliseconds, which may lie before the one it shows. */
  set(nowMs: number): void {
    this.#nowMs = nowMs
  }
}

/** Makes a store that goes by this clock, and in which nothing of an earlier case is left. */
export type CreateStore = (options: { readonly clock: Clock }) => Store | Promise<Store>

/** One promise that every store keeps. */
export interface ConformanceCase {
  readonly name: string
  /** Rejects with an `AssertionError` where the promise is broken. Closes the stores that it made. */
  run(createStore: CreateStore): Promise<void>
}

/** What a case has to work with: a store of its own, its time, and limiters on it. */
export interface Scene {
  /** Starts on a whole multiple of 10 s. */
  readonly clock: ManualClock
  /** Asks the store itself. */
  apply(...ops: Op[]): Promise<readonly Outcome[]>
  /** The name is the namespace of the keys. Default: `conformance`. */
  limiter(limits: readonly Limit[], name?: string): Limiter
  /** One with any other options. */
  create<Dimension extends string>(options: DimensionOptions<Dimension>): Limiter<Keys<Dimension>>
  create(options: LimiterOptions): Limiter
}

/** A promise of every store, and how it is checked, by the name of the promise. */
export type Cases = Readonly<Record<string, (scene: Scene) => Promise<void>>>

/** The cases of each of these. */
export function casesOfEach<T>(list: readonly T[], casesOf: (each: T) => Cases): Cases {
  return Object.assign({}, ...list.map(casesOf))
}

export async function play(check: (scene: Scene) => Promise<void>, createStore: CreateStore): Promise<void> {
  const clock = new ManualClock()
  const store = await createStore({ clock: clock.now })
  const limiters: { close(): void }[] = []
  const create: Scene['create'] = (options: object) => {
    // What is tested is what the store answers, however slow the machine.
    const made = createLimiter({ name: 'conformance', timeoutMs: 30_000, ...options, store } as never)
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

/** A limit of this size by each kind that counts sums, and by each of its forms. */
export const SUMS: Readonly<Record<string, (limit: number) => Limit>> = {
  'sliding window': (limit) => slidingWindow({ limit, window: '10s' }),
  'fixed window': (limit) => fixedWindow({ limit, window: '10s' }),
  'fixed window from the first hit': (limit) => fixedWindow({ limit, window: '10s', align: 'first-hit' }),
  'sliding counter': (limit) => slidingCounter({ limit, window: '10s' }),
  'token bucket': (limit) => tokenBucket({ capacity: limit, refill: 3, interval: '10s' }),
}

/** The same with those that keep requests one by one. */
export const KINDS: Readonly<Record<string, (limit: number) => Limit>> = {
  ...SUMS,
  'sliding window of a sorted set': (limit) => slidingWindow({ limit, window: '10s', log: 'zset' }),
  'sliding window of a stream': (limit) => slidingWindow({ limit, window: '10s', log: 'stream' }),
}

/** Imported late, since only the cases of a calendar need the package `temporal-polyfill`. */
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
  const decision = await limiter.consume(key, { cost })
  const should = `${cost} for ${JSON.stringify(key)} should be ${allowed ? 'admitted' : 'denied'}`
  assert.equal(decision.allowed, allowed, `${should}, not ${JSON.stringify(decision)}`)
  return decision
}

/** Units left, as a peek says. */
export async function left<Key extends AnyKey = string>(limiter: Limiter<Key>, key: Key): Promise<number> {
  return (await limiter.peek(key)).remaining
}

/** The same of each limit. */
export async function leftOfEach<Key extends AnyKey = string>(
  limiter: Limiter<Key>,
  key: Key,
): Promise<number[]> {
  return remainingOf(await limiter.peek(key))
}

export function remainingOf({ limits }: Decision): number[] {
  return limits.map(({ remaining }) => remaining)
}

/** Denied until this many milliseconds from now, and admitted then. */
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
