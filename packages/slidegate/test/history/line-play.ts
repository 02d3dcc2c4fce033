import assert from 'node:assert/strict'
import fc from 'fast-check'
import { banLog } from '../../src/limits/ban.ts'
import { limitSet, withLog } from '../../src/limits/limit-set.ts'
import { lineLog } from '../../src/limits/line.ts'
import { outcomesOf } from '../../src/stores/call.ts'
import type { ConsumeOutcome, Op } from '../../src/stores/store.ts'
import { ManualClock } from '../../src/testing.ts'
import { type Declaration, type KindName, ruledBy } from './declarations.ts'
import { LineOracle } from './line-oracle.ts'
import type { BanRule } from './models/ban.ts'
import type { StoreOf } from './play.ts'
import { declarationsOf } from './random-limits.ts'
import type { Scale } from './scale.ts'

const KINDS: readonly KindName[] = ['sliding', 'fixed', 'calendar', 'firstHit', 'counter', 'bucket']
const PROCESSES = ['process-id-A', 'process-id-B', 'process-id-C']

type Event =
  /** `who`: the process that waits; nothing for a request that does not. A process may say that it has just come. */
  | {
      readonly type: 'consume'
      readonly who: number | undefined
      readonly cost: number
      readonly count: number
      readonly isNew: boolean
    }
  | { readonly type: 'leave'; readonly who: number }
  | { readonly type: 'reset' }
  | { readonly type: 'wait'; readonly ms: number }
  /** For what was told last, and a little more or less. */
  | { readonly type: 'waitAsTold'; readonly offBy: number }

export interface LineHistory {
  readonly limits: readonly Declaration[]
  readonly ban: BanRule
  readonly startMs: number
  readonly events: readonly Event[]
}

export function lineHistoryOf(scale: Scale): fc.Arbitrary<LineHistory> {
  const who = fc.nat({ max: PROCESSES.length - 1 })
  const is = <Type extends Event['type']>(type: Type) => fc.constant(type)
  const ms = fc.oneof(fc.nat({ max: 3 }), fc.nat({ max: scale.windowMs }), fc.constantFrom(499, 500, 501))
  const back = fc.record({ type: is('wait'), ms: fc.integer({ min: -2200, max: -1 }) })
  const consume = fc.record({
    type: is('consume'),
    who: fc.oneof({ weight: 4, arbitrary: who }, fc.constant(undefined)),
    cost: fc.oneof({ weight: 3, arbitrary: fc.constant(1) }, fc.integer({ min: 1, max: scale.limit + 1 })),
    count: fc.constantFrom(1, 1, 1, 2, 4),
    isNew: fc.constantFrom(false, false, false, true),
  })
  const event: fc.Arbitrary<Event> = fc.oneof(
    { weight: 12, arbitrary: consume },
    { weight: 1, arbitrary: fc.record({ type: is('leave'), who }) },
    { weight: 1, arbitrary: fc.record({ type: is('reset') }) },
    { weight: 4, arbitrary: fc.record({ type: is('wait'), ms }) },
    {
      weight: 4,
      arbitrary: fc.record({ type: is('waitAsTold'), offBy: fc.constantFrom(-1, 0, 0, 1, 499, 500) }),
    },
    { weight: scale.clockSteps ? 1 : 0, arbitrary: back },
  )
  const time = fc.integer({ min: 10, max: scale.windowMs })
  return fc.record({
    limits: declarationsOf(scale),
    ban: fc.record({
      after: fc.constantFrom(4, 8),
      within: time,
      for: fc.array(time, { minLength: 1, maxLength: 2 }),
      forgetAfter: time,
    }),
    startMs: fc.integer({ min: 10_000_000_000, max: 2_000_000_000_000 }),
    events: fc.array(event, { minLength: 1, maxLength: scale.events, size: 'max' }),
  })
}

let histories = 0

/** How often there was what is to be tried. */
export interface SeenInLine {
  readonly decisions: number
  readonly behind: number
  readonly held: number
}

/** Throws at the first difference between a store and the model. */
export async function playLine(
  { limits, ban, startMs, events }: LineHistory,
  storesOf: Readonly<Record<string, StoreOf>>,
): Promise<SeenInLine> {
  let decisions = 0
  const clock = new ManualClock(startMs)
  const key = `line${histories++}`
  const ruled = ruledBy(limits)
  const declared = ruled.map(({ limit }) => limit)
  const set = withLog(limitSet('line', declared), banLog(ban))
  const asked = [{ key, set }]
  const waiting = [{ key, set: withLog(set, lineLog) }]
  const stores = Object.entries(storesOf).map(([name, storeOf]) => [name, storeOf(clock)] as const)
  const oracle = new LineOracle(ruled, ban)
  const sinceMs = PROCESSES.map(() => 0)
  let toldMs = 0

  async function ask(op: Op, wanted: unknown, place: number): Promise<void> {
    for (const [name, store] of stores) {
      const [outcome] = await outcomesOf(store, [op])
      assert.deepEqual(outcome, wanted, `${name} differs at event ${place}: ${JSON.stringify(events[place])}`)
    }
  }

  for (const [place, event] of events.entries()) {
    if (event.type === 'wait') clock.advance(event.ms)
    else if (event.type === 'waitAsTold') clock.advance(Math.max(0, toldMs + event.offBy))
    else if (event.type === 'reset') {
      oracle.reset()
      await ask({ type: 'reset', parts: waiting }, undefined, place)
    } else if (event.type === 'leave') {
      const id = PROCESSES[event.who]!
      oracle.leave(clock.now(), id)
      sinceMs[event.who] = 0
      await ask({ type: 'leave', parts: waiting, id }, undefined, place)
    } else {
      const { who, cost, count, isNew } = event
      const ticket =
        who === undefined ? undefined : { id: PROCESSES[who]!, sinceMs: isNew ? 0 : sinceMs[who]! }
      const answer = oracle.consume(clock.now(), cost, count, ticket)
      const parts = ticket === undefined ? asked : waiting
      await ask({ type: 'consume', parts, cost, count, leaseMs: 0, ...(ticket && { ticket }) }, answer, place)
      decisions++
      toldMs = Math.max(0, ...answer.limits.filter((ms, i) => i % 3 === 1 && ms < 10_000))
      if (who !== undefined) sinceMs[who] = sinceAfter(answer, count, ticket!.sinceMs)
    }
  }
  return { decisions, ...oracle.seen }
}

/** What a process says next: as long as it waits, since when. */
function sinceAfter({ admitted, atMs, bannedParts }: ConsumeOutcome, count: number, sinceMs: number): number {
  if (admitted === count) return 0
  if (bannedParts !== undefined) return sinceMs
  return admitted > 0 || sinceMs === 0 ? atMs : sinceMs
}

const small: Scale = { limit: 6, windowMs: 600, events: 50, longWaits: 5, limits: 2, kinds: KINDS }

export const LINE_SCALES: Readonly<Record<string, Scale>> = {
  'by the clock': small,
  'the clock set back now and then': { ...small, windowMs: 3000, clockSteps: true },
}
