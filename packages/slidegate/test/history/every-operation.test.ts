// tier: system
import { describe, expect, test } from 'vitest'
import { KINDS, type KindName } from './declarations.ts'
import type { KeyedScale } from './keyed-histories.ts'
import type { KeyedResult } from './keyed-oracle.ts'
import { type KeyedView, playKeyedAtRandom, type Seen } from './keyed-play.ts'
import type { StoreOf } from './play.ts'
import { useStores } from './use-stores.ts'

// Keys with several dimensions, bans, changing limits, reservations and explanations. The same random history runs
// through an oracle that counts events, through memory and through Redis. Every field of every answer must be equal.

const stores = useStores()

const ON_CLUSTER = 'ioredis on a Cluster'

function storesOf(...names: string[]): Record<string, StoreOf> {
  return Object.fromEntries(names.map((name) => [name, stores[name]!]))
}

const small: KeyedScale = {
  ...{ limit: 6, windowMs: 200, events: 50, longWaits: 5, limits: 2 },
  ...{ kinds: KINDS, dimensions: [1, 2, 3] },
}

/** Windows are longer than a clock step. Charges from before a step back still count. */
const long: KeyedScale = { ...small, windowMs: 3000, clockSteps: true }

/** Kinds that keep sums. Only these can be reserved. */
const SUMS: readonly KindName[] = [
  'sliding',
  'sliding',
  'sliding',
  'fixed',
  'calendar',
  'firstHit',
  'counter',
  'bucket',
]

/** The minimum number of decisions and of other events. */
interface Wanted {
  readonly decisions: number
  readonly seen?: Partial<Seen>
}

const SCALES: Record<string, KeyedScale & Wanted> = {
  'with several keys per request': { ...small, dimensions: [2, 3], decisions: 240 },
  'with several keys per request and a clock that is set back': {
    ...long,
    dimensions: [2, 3],
    decisions: 120,
  },
  'with bans': { ...small, bans: true, decisions: 240, seen: { blocked: 10, banned: 1 } },
  'with bans and a clock that is set back': {
    ...long,
    bans: true,
    decisions: 120,
    seen: { blocked: 5, banned: 1 },
  },
  'with reservations': { ...small, kinds: SUMS, reservations: true, decisions: 200, seen: { settled: 2 } },
  'with reservations, bans and a clock that is set back': {
    ...{ ...long, kinds: SUMS, reservations: true, bans: true, decisions: 120 },
    seen: { settled: 1, blocked: 4 },
  },
  'with limits that change': { ...small, sets: [2, 3], decisions: 200, seen: { changed: 6 } },
  'with one to three limits whose numbers change': {
    ...{ ...small, limits: 3, sets: [2, 3], onlyNumbers: true, decisions: 240, seen: { changed: 6 } },
  },
  'with sums whose numbers change and a clock that is set back': {
    ...{
      ...long,
      kinds: SUMS,
      limits: 3,
      sets: [3],
      onlyNumbers: true,
      decisions: 120,
      seen: { changed: 3 },
    },
  },
  'with limits of sums that change and a clock that is set back': {
    ...{ ...long, kinds: SUMS, sets: [2, 3], decisions: 160, seen: { changed: 4 } },
  },
  'with changing windows on one log': { ...small, kinds: ['sliding'], sets: [2, 3], decisions: 120 },
  'with reservations and limits that change': {
    ...{ ...small, kinds: SUMS, laterKinds: KINDS, sets: [2, 3], reservations: true, decisions: 160 },
    seen: { settled: 1, changed: 3 },
  },
  'with overrides': {
    ...small,
    limits: 3,
    overrides: true,
    decisions: 240,
    seen: { overridden: 40, blocked: 10 },
  },
  'with overrides and a clock that is set back': {
    ...{ ...long, limits: 3, overrides: true, decisions: 120, seen: { overridden: 20, blocked: 5 } },
  },
  'with overrides of windows on one log': {
    ...{ ...small, kinds: ['sliding'], overrides: true, decisions: 120, seen: { overridden: 20 } },
  },
  'with overrides and limits that change': {
    ...{ ...small, sets: [2, 3], overrides: true, decisions: 160, seen: { overridden: 30, changed: 4 } },
  },
  'with overrides, bans, reservations and a clock that is set back': {
    ...{ ...long, kinds: SUMS, overrides: true, bans: true, reservations: true, decisions: 120 },
    seen: { overridden: 20, settled: 1, blocked: 5 },
  },
  'with everything': {
    ...{ ...small, sets: [1, 2], bans: true, reservations: true, overrides: true, decisions: 200 },
    seen: { blocked: 5, banned: 2, changed: 2, overridden: 20 },
  },
}

async function expectAll(
  { decisions, seen = {}, ...scale }: KeyedScale & Wanted,
  on: Record<string, StoreOf>,
  view?: KeyedView,
): Promise<void> {
  const all = await playKeyedAtRandom(scale, on, { decisions, ...seen }, view)
  for (const [what, times] of Object.entries(seen)) {
    expect(all[what as keyof Seen], what).toBeGreaterThanOrEqual(times)
  }
}

describe('memory, Redis and the oracle return equal answers', () => {
  test.for(Object.entries(SCALES))('%s', async ([, scale]) => {
    await expectAll(scale, storesOf('memory', 'ioredis', 'the slow path'))
  })
})

/** Compares only admissions in full. On a Cluster, a denial reports counts that are slightly out of date. */
const admissionsInAll: KeyedView = (actual, wanted) => {
  if (!isDenied(wanted)) return [actual, wanted]
  if (!isDenied(actual)) return [actual, wanted]
  const isBlamed = actual.deniedBy.some((name) => wanted.deniedBy.includes(name))
  return [
    { allowed: actual.allowed, atMs: actual.atMs, isBlamed },
    { allowed: false, atMs: wanted.atMs, isBlamed: true },
  ]
}

interface Denied {
  readonly allowed: false
  readonly atMs: number
  readonly deniedBy: readonly string[]
}

function isDenied(result: KeyedResult): result is KeyedResult & Denied {
  return typeof result === 'object' && 'source' in result && !result.allowed
}

describe('a Cluster and the oracle return equal answers', () => {
  const alone: KeyedScale = {
    ...long,
    dimensions: [1],
    bans: true,
    reservations: true,
    sets: [1, 2],
    overrides: true,
    kinds: SUMS,
  }

  test('for requests with one key', async () => {
    await expectAll(
      { ...alone, decisions: 100, seen: { banned: 1, settled: 1, overridden: 16 } },
      storesOf(ON_CLUSTER),
    )
  })

  // A slot needs a request id, which only requests on one server can have.
  const kinds = KINDS.filter((kind) => kind !== 'concurrency')

  // Concurrent requests may be denied for units that are being returned, so they run one at a time.
  test.for([
    ['kinds', { ...small, kinds }],
    ['reservations', { ...small, kinds: SUMS, reservations: true, noResets: true }],
    ['overrides', { ...small, kinds, overrides: true }],
  ] as const)(
    'for requests with several keys, in admissions and all their fields: %s',
    {
      timeout: 300_000,
    },
    async ([, scale]) => {
      await expectAll(
        { ...scale, dimensions: [2, 3], oneByOne: true, decisions: 100 },
        storesOf(ON_CLUSTER),
        admissionsInAll,
      )
    },
  )
})
