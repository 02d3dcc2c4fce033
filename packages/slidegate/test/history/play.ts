import assert from 'node:assert/strict'
import fc from 'fast-check'
import { createLimiter } from '../../src/index.ts'
import type { Store } from '../../src/stores/store.ts'
import { ManualClock } from '../../src/testing/index.ts'
import { ruledBy } from './declarations.ts'
import { type History, historyOf } from './histories.ts'
import { OraclePlayer } from './oracle-player.ts'
import type { Result } from './result.ts'
import type { Scale } from './scale.ts'
import { StorePlayer } from './store-player.ts'

/** Creates a store that uses this clock. */
export type StoreOf = (clock: ManualClock) => Store

let histories = 0

/**
 * Plays a history on the oracle and the stores. Throws at the first difference.
 * `view` maps results to what is compared. Returns the number of decisions.
 */
export async function play(
  history: History,
  stores: Readonly<Record<string, StoreOf>>,
  view: (result: Result) => unknown = (result) => result,
): Promise<number> {
  const clock = new ManualClock(history.startMs)
  const key = `key${histories++}`
  const names = Object.keys(stores)
  const ruled = history.limiters.map(ruledBy)
  const limiters = names.map((name) => {
    const store = stores[name]!(clock)
    // Two limiters with one name, like two processes during a rolling deploy.
    return ruled.map((each) => {
      return createLimiter({
        name: 'history',
        limits: each.map(({ limit }) => limit),
        store,
        timeoutMs: 30_000,
      })
    })
  })
  const expected = new OraclePlayer(ruled, clock)
  const players = limiters.map((pair) => new StorePlayer(ruled, pair, key))
  try {
    for (const [place, event] of history.events.entries()) {
      if (event.type === 'wait') {
        clock.advance(event.ms)
        continue
      }
      if (event.type === 'waitWindow') {
        const declared = ruled[event.who]!
        clock.advance(declared[event.which % declared.length]!.limit.windowMs + event.offBy)
        continue
      }
      const wanted = expected.results(event)
      const all = await Promise.all(players.map((player) => player.results(event)))
      all.forEach((results, i) => {
        assert.deepEqual(
          results.map(view),
          wanted.map(view),
          `${names[i]} differs from the oracle at event ${place}: ${JSON.stringify(event)}`,
        )
      })
    }
  } finally {
    for (const pair of limiters) for (const limiter of pair) limiter.close()
  }
  return expected.decisions
}

const { HISTORIES } = process.env

/** Multiplier for the number of decisions. `HISTORIES=20` plays more, with different seeds each time. */
export const TIMES = Number(HISTORIES ?? 1)

/** Returns options for the nth round. The seed is the same in every run, unless `HISTORIES` is set. */
export function roundOf(n: number): { numRuns: number; seed?: number } {
  return HISTORIES === undefined ? { numRuns: 2, seed: n } : { numRuns: 2 }
}

/** Plays random histories until this many decisions are made. Returns the number of decisions. */
export async function playAtRandom(
  scale: Scale,
  stores: Readonly<Record<string, StoreOf>>,
  decisions: number,
  view?: (result: Result) => unknown,
): Promise<number> {
  let made = 0
  for (let round = 1; made < decisions * TIMES; round++) {
    const property = fc.asyncProperty(historyOf(scale), async (history) => {
      made += await play(history, stores, view)
    })
    await fc.assert(property, roundOf(round))
  }
  return made
}
