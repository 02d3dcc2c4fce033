import assert from 'node:assert/strict'
import type { Decision } from '../decision.ts'
import type { AnyKey, Keys } from '../key.ts'
import { createLimiter } from '../limiter/create-limiter.ts'
import type { DimensionOptions, Limiter, LimiterOptions } from '../limiter.ts'
import type { CalendarWindowOptions } from '../limits/calendar.ts'
import type { Limit } from '../limits/limit.ts'
import type { Clock } from '../runtime/clock.ts'
import { outcomesOf } from '../stores/call.ts'
import type { Op, Outcome, Store } from '../stores/store.ts'
import { ManualClock } from './manual-clock.ts'

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

export function conformanceCase(name: string, play: (scene: Scene) => Promise<void>): ConformanceCase {
  return {
    name,
    async run(createStore) {
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
        await play({ clock, apply: (...ops) => outcomesOf(store, ops), limiter, create })
      } finally {
        for (const made of limiters) made.close()
        store.close()
      }
    },
  }
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
