import '../../src/calendar.ts'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { gunzipSync, gzipSync } from 'node:zlib'
import type { Entry } from '../../src/limits/limit.ts'
import { outcomesOf } from '../../src/stores/call.ts'
import { limitsInForce } from '../../src/stores/outcome.ts'
import { readOp } from '../../src/stores/remote/ops.ts'
import { KnownSets } from '../../src/stores/remote/sets.ts'
import type { ConsumeOutcome, Op, Outcome, RequestOp, Store } from '../../src/stores/store.ts'
import { ManualClock } from '../../src/testing/index.ts'
import { type Batch, RandomHistory } from './random-ops.ts'
import { FEATURES, type SetJson } from './random-sets.ts'

// Random histories of ops and their outcomes. Each line of the file is a history.

const FILE = join(import.meta.dirname, 'outcomes.jsonl.gz')

export interface PlayedHistory {
  readonly feature: string
  readonly sets: readonly SetJson[]
  readonly startMs: number
  readonly batches: readonly Batch[]
  /** For each op of each batch. */
  readonly outcomes: readonly (readonly unknown[])[]
}

export type StoreBy = (clock: ManualClock) => Store

export function readOutcomes(): readonly PlayedHistory[] {
  const lines = gunzipSync(readFileSync(FILE)).toString().trimEnd().split('\n')
  return lines.map((line) => JSON.parse(line))
}

/** Plays new histories on an empty store and writes them. Returns how many ops they have. */
export async function writeOutcomes(storeBy: StoreBy, empty: () => Promise<unknown>): Promise<number> {
  const histories: PlayedHistory[] = []
  for (let seed = 0; seed < 64; seed++) {
    await empty()
    histories.push(await newHistory(seed, storeBy))
  }
  const text = histories.map((history) => `${JSON.stringify(history)}\n`).join('')
  writeFileSync(FILE, gzipSync(text, { level: 9 }))
  return histories.flatMap(({ batches }) => batches.flat()).length
}

async function newHistory(seed: number, storeBy: StoreBy): Promise<PlayedHistory> {
  const known = new KnownSets()
  const feature = FEATURES[seed % FEATURES.length]!
  const options = { feature, length: feature === 'deep' ? 300 : 60, isSmall: true, isOrdered: true }
  const history = new RandomHistory(seed, (set) => known.of(set, () => {}), options)
  const { sets, startMs } = history
  const player = new Player(sets, startMs, storeBy)
  const batches: Batch[] = []
  const outcomes: unknown[][] = []
  for (let batch = history.next(); batch !== undefined; batch = history.next()) {
    const told = await player.play(batch)
    history.learn(batch, told)
    batches.push(batch)
    outcomes.push(told)
  }
  return { feature, sets, startMs, batches, outcomes }
}

/** Sends batches to a store. */
export class Player {
  readonly #sets
  readonly #clock: ManualClock
  readonly #store: Store

  constructor(sets: readonly SetJson[], startMs: number, storeBy: StoreBy) {
    const known = new KnownSets()
    this.#sets = sets.map((set) => known.of(set, () => {}))
    this.#clock = new ManualClock(startMs)
    this.#store = storeBy(this.#clock)
  }

  /** Returns the outcomes as JSON. */
  play(batch: Batch): Promise<unknown[]> {
    const asked = batch.map(async ([afterMs, json]) => {
      const op = readOp(json, this.#sets)
      this.#clock.advance(afterMs)
      const [outcome] = await outcomesOf(this.#store, [op])
      return JSON.parse(
        JSON.stringify(comparable(op, outcome) ?? null, (_, value) =>
          value === Number.POSITIVE_INFINITY ? 'Infinity' : value,
        ),
      )
    })
    return Promise.all(asked)
  }
}

/** The outcome without what a store may answer in several ways. */
function comparable(op: Op, outcome: Outcome): object | undefined {
  if (outcome === undefined) return undefined
  if ('lists' in outcome) {
    const byAge = (a: Entry, b: Entry) => a.atMs - b.atMs || (a.name < b.name ? -1 : 1)
    return { lists: outcome.lists.map((list) => list.toSorted(byAge)) }
  }
  if (op.type === 'overrides' && 'buckets' in outcome) {
    return outcome.overrides.toSorted((a, b) => (a.key < b.key ? -1 : 1))
  }
  return 'admitted' in outcome ? comparableDecision(op as RequestOp, outcome) : outcome
}

/** Drops what only requests decided together have. */
function comparableDecision(op: RequestOp, outcome: ConsumeOutcome): object {
  const limits = limitsInForce(op, outcome)
  const numbers = outcome.limits.slice(0, 3 * limits.length)
  limits.forEach(({ limit }, i) => {
    if (op.count === 1 && numbers[3 * i]! + op.cost <= limit) numbers[3 * i + 1] = 0
  })
  return { ...outcome, admitted: Math.min(outcome.admitted, op.count), limits: numbers }
}
