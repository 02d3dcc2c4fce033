import { KINDS, type KindName } from '../history/declarations.ts'
import type { KeyedScale } from '../history/keyed-histories.ts'
import type { Scale } from '../history/scale.ts'

// Scales of the histories that detect mutants in Lua and TypeScript.

const small = { limit: 6, windowMs: 200, events: 60, longWaits: 5 }
const back = { ...small, windowMs: 3000, clockSteps: true }
const hours = { ...small, shortestMs: 300_000, windowMs: 600_000 }
const great = { ...back, limit: 2 ** 40, windowMs: 100_000 }
const window: readonly KindName[] = ['sliding']
const sums: readonly KindName[] = ['sliding', 'sliding', 'fixed', 'calendar', 'firstHit', 'counter', 'bucket']

function scalesOf(kind: KindName): Record<string, Scale> {
  const kinds = [kind]
  if (kind === 'concurrency') {
    return { [kind]: { ...hours, kinds }, [`${kind}, clock set back`]: { ...hours, clockSteps: true, kinds } }
  }
  const isSum = sums.includes(kind) && kind !== 'sliding'
  return {
    [kind]: { ...small, kinds },
    [`${kind}, clock set back`]: { ...back, kinds },
    ...(isSum && {
      [`${kind}, great`]: { ...great, kinds },
      [`${kind}, charged beyond all`]: { ...great, charge: Number.MAX_SAFE_INTEGER, kinds },
      [`few of ${kind}, charged beyond all`]: { ...back, charge: Number.MAX_SAFE_INTEGER, kinds },
    }),
  }
}

export const SCALES: Record<string, Scale> = {
  ...Object.assign({}, ...KINDS.map(scalesOf)),
  'long logs': { limit: 400, windowMs: 2000, events: 900, longWaits: 1, kinds: window },
  'one long log': { limit: 300, windowMs: 1000, events: 900, longWaits: 1, oneLog: true, kinds: window },
  'one short log': { limit: 20, windowMs: 100, events: 100, longWaits: 4, oneLog: true, kinds: window },
  bursts: { limit: 50, windowMs: 100, events: 30, longWaits: 4, oneLog: true, burst: 40, kinds: window },
  'bursts, clock set back': {
    ...{ limit: 30, windowMs: 300, events: 30, longWaits: 4, clockSteps: true, burst: 25, kinds: window },
  },
  'long streams': { limit: 80, windowMs: 2000, events: 200, longWaits: 1, kinds: ['stream'], burst: 60 },
  'long sets': { limit: 80, windowMs: 2000, events: 200, longWaits: 1, kinds: ['zset'], burst: 60 },
  'all kinds': { ...hours, clockSteps: true, kinds: KINDS },
}

const keyed = { ...small, events: 50, limits: 2, kinds: KINDS, dimensions: [1, 2, 3] }
const keyedBack = { ...keyed, windowMs: 3000, clockSteps: true }

export const KEYED: Record<string, KeyedScale> = {
  'several keys': { ...keyed, dimensions: [2, 3] },
  'several keys, clock set back': { ...keyedBack, dimensions: [2, 3] },
  bans: { ...keyed, bans: true },
  'bans, clock set back': { ...keyedBack, bans: true },
  ...Object.fromEntries(
    KINDS.filter((kind) => sums.includes(kind)).map((kind) => [
      `bans by ${kind} of several keys`,
      { ...keyed, kinds: [kind], dimensions: [2], bans: true },
    ]),
  ),
  reservations: { ...keyed, kinds: sums, reservations: true },
  'reservations and bans, clock set back': { ...keyedBack, kinds: sums, reservations: true, bans: true },
  'limits that change': { ...keyed, sets: [2, 3] },
  'sums that change, clock set back': { ...keyedBack, kinds: sums, sets: [2, 3] },
  'windows that change': { ...keyed, kinds: window, sets: [2, 3] },
  'reservations under limits that change': {
    ...{ ...keyed, kinds: sums, laterKinds: KINDS, sets: [2, 3], reservations: true },
  },
  overrides: { ...keyed, limits: 3, overrides: true },
  'overrides and bans, clock set back': { ...keyedBack, overrides: true, bans: true },
  'all of it': { ...keyed, sets: [1, 2], bans: true, reservations: true },
}
