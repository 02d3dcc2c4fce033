import assert from 'node:assert/strict'
import fc from 'fast-check'
import { ManualClock } from '../../src/testing/index.ts'
import { edgesOf, type KeyedHistory, type KeyedScale, keyedHistoryOf } from './keyed-histories.ts'
import { KeyedOracle, type KeyedResult, SetsInForce } from './keyed-oracle.ts'
import { KeyedStorePlayer } from './keyed-store-player.ts'
import { roundOf, type StoreOf, TIMES } from './play.ts'

/** How often each kind of event happened. */
export type Seen = KeyedOracle['seen'] & { decisions: number }

let histories = 0

/** Maps a store's result and the oracle's result to the values that must be equal. */
export type KeyedView = (
  actual: KeyedResult,
  wanted: KeyedResult,
) => readonly [actual: unknown, wanted: unknown]

const IN_ALL: KeyedView = (actual, wanted) => [actual, wanted]

/** Plays a history of keys with several dimensions. Throws at the first field that differs. */
export async function playKeyed(
  history: KeyedHistory,
  stores: Readonly<Record<string, StoreOf>>,
  view: KeyedView = IN_ALL,
): Promise<KeyedOracle> {
  const clock = new ManualClock(history.startMs)
  const name = `keyed${process.pid}-${histories++}`
  const inForce = new SetsInForce()
  const oracle = new KeyedOracle(history, clock, inForce)
  const edges = edgesOf(history.dimensions, history.ttlsMs)
  const players = Object.entries(stores).map(
    ([store, storeOf]) => [store, new KeyedStorePlayer(history, inForce, storeOf(clock), name)] as const,
  )
  try {
    for (const [place, event] of history.events.entries()) {
      if (event.type === 'wait') {
        clock.advance(event.ms)
        continue
      }
      if (event.type === 'waitFor') {
        clock.advance(edges[event.which % edges.length]! + event.offBy)
        continue
      }
      // The oracle goes first: it also sets the limits that are in force.
      const wanted = oracle.results(event)
      const all = await Promise.all(players.map(([, player]) => player.results(event)))
      all.forEach((results, i) => {
        const pairs = wanted.map((each, j) => view(results[j], each))
        assert.deepEqual(
          pairs.map(([actual]) => actual),
          pairs.map(([, wanted]) => wanted),
          `${players[i]![0]} differs from the oracle at event ${place}: ${JSON.stringify(event)}`,
        )
        assert.equal(results.length, wanted.length)
      })
    }
  } finally {
    for (const [, player] of players) player.close()
  }
  return oracle
}

/**
 * Plays random histories until they have contained enough of each event.
 *
 * Stops early after five times the wanted decisions. Returns how often each event happened.
 */
export async function playKeyedAtRandom(
  scale: KeyedScale,
  stores: Readonly<Record<string, StoreOf>>,
  wanted: Partial<Seen> & Pick<Seen, 'decisions'>,
  view?: KeyedView,
): Promise<Seen> {
  const sum: Seen = { decisions: 0, blocked: 0, banned: 0, settled: 0, changed: 0, overridden: 0 }
  const names = Object.keys(sum) as (keyof Seen)[]
  const isMissing = (what: keyof Seen) => sum[what] < TIMES * (wanted[what] ?? 0)
  for (let round = 1; names.some(isMissing) && sum.decisions < 5 * TIMES * wanted.decisions; round++) {
    const property = fc.asyncProperty(keyedHistoryOf(scale), async (history) => {
      const { seen, decisions } = await playKeyed(history, stores, view)
      const all = { ...seen, decisions }
      for (const what of names) sum[what] += all[what]
    })
    await fc.assert(property, roundOf(round))
  }
  return sum
}
