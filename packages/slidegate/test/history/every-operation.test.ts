// tier: system
import { describe, expect, test } from 'vitest'
import { KINDS, type KindName } from './declarations.ts'
import type { KeyedScale } from './keyed-histories.ts'
import type { KeyedResult } from './keyed-oracle.ts'
import { type KeyedView, playKeyedAtRandom, type Seen } from './keyed-play.ts'
import type { StoreOf } from './play.ts'
import { useStores } from './use-stores.ts'

// Requests for keys of several dimensions, bans, limits that change, reservations and explanations: the same random
// histories through an oracle of true events, through memory and through Redis, equal in every field of all that is
// answered.

const stores = useStores()

const ON_CLUSTER = 'ioredis on a Cluster'

function storesOf(...names: string[]): Record<string, StoreOf> {
  return Object.fromEntries(names.map((name) => [name, stores[name]!]))
}

const small: KeyedScale = {
  ...{ limit: 6, windowMs: 200, events: 50, longWaits: 5, limits: 2 },
  ...{ kinds: KINDS, dimensions: [1, 2, 3] },
}

/** Windows so long that a clock which is set back by more than a second is still in one that counts. */
const long: KeyedScale = { ...small, windowMs: 3000, clockSteps: true }

/** Kinds that keep sums: nothing else can be reserved. */
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

/** How many decisions, and how often at least there has to be what is tried. */
interface Wanted {
  readonly decisions: number
  readonly seen?: Partial<Seen>
}

const SCALES: Record<string, KeyedScale & Wanted> = {
  'several keys of each request': { ...small, dimensions: [2, 3], decisions: 240 },
  'the same, the clock set back now and then': { ...long, dimensions: [2, 3], decisions: 120 },
  bans: { ...small, bans: true, decisions: 240, seen: { blocked: 10, banned: 1 } },
  'bans, the clock set back': { ...long, bans: true, decisions: 120, seen: { blocked: 5, banned: 1 } },
  reservations: { ...small, kinds: SUMS, reservations: true, decisions: 200, seen: { settled: 2 } },
  'reservations and bans, the clock set back': {
    ...{ ...long, kinds: SUMS, reservations: true, bans: true, decisions: 120 },
    seen: { settled: 1, blocked: 4 },
  },
  'limits that change': { ...small, sets: [2, 3], decisions: 200, seen: { changed: 6 } },
  'numbers that change, of one to three limits': {
    ...{ ...small, limits: 3, sets: [2, 3], onlyNumbers: true, decisions: 240, seen: { changed: 6 } },
  },
  'the same of sums, the clock set back': {
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
  'limits of sums that change, the clock set back': {
    ...{ ...long, kinds: SUMS, sets: [2, 3], decisions: 160, seen: { changed: 4 } },
  },
  'windows over one log that change': { ...small, kinds: ['sliding'], sets: [2, 3], decisions: 120 },
  'reservations under limits that change': {
    ...{ ...small, kinds: SUMS, laterKinds: KINDS, sets: [2, 3], reservations: true, decisions: 160 },
    seen: { settled: 1, changed: 3 },
  },
  overrides: {
    ...small,
    limits: 3,
    overrides: true,
    decisions: 240,
    seen: { overridden: 40, blocked: 10 },
  },
  'overrides, the clock set back': {
    ...{ ...long, limits: 3, overrides: true, decisions: 120, seen: { overridden: 20, blocked: 5 } },
  },
  'overrides of windows over one log': {
    ...{ ...small, kinds: ['sliding'], overrides: true, decisions: 120, seen: { overridden: 20 } },
  },
  'overrides under limits that change': {
    ...{ ...small, sets: [2, 3], overrides: true, decisions: 160, seen: { overridden: 30, changed: 4 } },
  },
  'overrides, bans and reservations, the clock set back': {
    ...{ ...long, kinds: SUMS, overrides: true, bans: true, reservations: true, decisions: 120 },
    seen: { overridden: 20, settled: 1, blocked: 5 },
  },
  'all of it': {
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

describe('memory, Redis and the oracle agree in every field of every answer', () => {
  test.for(Object.entries(SCALES))('%s', async ([, scale]) => {
    await expectAll(scale, storesOf('memory', 'ioredis', 'the rare way alone'))
  })
})

/** A denial reads what others were told a moment ago, rather than to ask each part of a Cluster again. */
const admissionsInAll: KeyedView = (told, wanted) => {
  if (!isDenied(wanted)) return [told, wanted]
  if (!isDenied(told)) return [told, wanted]
  const isBlamed = told.deniedBy.some((name) => wanted.deniedBy.includes(name))
  return [
    { allowed: told.allowed, atMs: told.atMs, isBlamed },
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

describe('so do those on a Cluster', () => {
  const alone: KeyedScale = {
    ...long,
    dimensions: [1],
    bans: true,
    reservations: true,
    sets: [1, 2],
    overrides: true,
    kinds: SUMS,
  }

  test('of one key each', async () => {
    await expectAll(
      { ...alone, decisions: 100, seen: { banned: 1, settled: 1, overridden: 16 } },
      storesOf(ON_CLUSTER),
    )
  })

  // Of requests that are made at the same time, one may be denied for what is returned to another.
  test.for([
    ['kinds', { ...small, kinds: KINDS }],
    ['reservations', { ...small, kinds: SUMS, reservations: true, noResets: true }],
    ['overrides', { ...small, kinds: KINDS, overrides: true }],
  ] as const)(
    'where requests have several keys, in who is admitted, and all that these are told: %s',
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
