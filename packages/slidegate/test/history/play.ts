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

/** A store whose clock is the one given. */
export type StoreOf = (clock: ManualClock) => Store

let histories = 0

/**
 * Plays a history through the oracle and the stores; throws at the first difference in any field, or in what `view`
 * shows of it. Answers the decisions made.
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
    // Two limiters of one name: two processes in the middle of a rolling deploy.
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

/** How many times as much is played: `HISTORIES=20` for a longer form, by other seeds each time. */
export const TIMES = Number(HISTORIES ?? 1)

/** The nth round is the same in every run, but in the longer form. */
export function roundOf(n: number): { numRuns: number; seed?: number } {
  return HISTORIES === undefined ? { numRuns: 2, seed: n } : { numRuns: 2 }
}

/** Plays random histories until so many decisions were made; answers how many. */
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
