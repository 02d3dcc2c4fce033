// tier: integration
import assert from 'node:assert/strict'
import fc from 'fast-check'
import { expect, it } from 'vitest'
import {
  createLimiter,
  type Decision,
  fixedWindow,
  type Limit,
  type Limiter,
  memoryStore,
  type Store,
  slidingWindow,
  withLeases,
} from '../../src/index.ts'
import { redisStore } from '../../src/stores/redis/index.ts'
import { ManualClock } from '../../src/testing/index.ts'
import { type Admission, fullestWindow } from '../processes/fullest-window.ts'
import { type HeldStore, held } from '../resilience/stores.ts'
import { useRedis } from '../support/use-redis.ts'
import type { StoreOf } from './play.ts'

// Processes on one store, some of them leasing: whatever happens, no window is over its limit by the times at which
// units were truly spent; and once everybody has returned what they hold, the store counts what was spent, no more
// and no less.

const { redis } = await useRedis()
let histories = 0
const redisOf: StoreOf = (clock) =>
  redisStore(redis, { clock: clock.now, prefix: `slidegate:leases${histories++}` })

type Event =
  | { readonly type: 'consume'; readonly who: number; readonly cost: number; readonly times: number }
  | { readonly type: 'refund'; readonly which: number; readonly units: number }
  | { readonly type: 'charge'; readonly who: number; readonly units: number }
  | { readonly type: 'wait'; readonly ms: number }
  /** To about where something ends that began now, give or take a part of a lease's time; or where the fixed window does. */
  | {
      readonly type: 'waitFor'
      readonly end: 'lease' | 'window' | 'longer' | 'fixed'
      readonly offBy: number
    }
  /** Adds a limit to this process: a longer window of the same log. */
  | { readonly type: 'widen'; readonly who: number }
  /** From now on, answers to this process take their time; or all that wait arrive. */
  | { readonly type: 'hold' | 'release'; readonly who: number }

interface History {
  readonly limits: readonly { readonly limit: number; readonly window: number; readonly precision: number }[]
  /** The limit of widened processes, `times` as long as the first limit's window. */
  readonly longer: { readonly limit: number; readonly times: number }
  readonly fixed: { readonly limit: number; readonly window: number } | undefined
  readonly shadow: number | undefined
  readonly leaseMs: readonly number[]
  readonly startMs: number
  readonly events: readonly Event[]
}

/** The processes that lease, and one more that does not. */
const LEASING = 3

const who = fc.nat({ max: LEASING })

const EVENTS = {
  consume: fc.record({
    type: fc.constant('consume' as const),
    who,
    cost: fc.constantFrom(1, 1, 1, 1, 2, 5),
    times: fc.constantFrom(1, 2, 10, 30, 100),
  }),
  wait: fc.record({ type: fc.constant('wait' as const), ms: fc.constantFrom(0, 1, 2, 5) }),
  waitFor: fc.record({
    type: fc.constant('waitFor' as const),
    end: fc.constantFrom<'lease' | 'window' | 'longer' | 'fixed'>(
      'lease',
      'lease',
      'window',
      'longer',
      'fixed',
    ),
    offBy: fc.constantFrom(-1, -0.5, -0.1, 0, 0.5, 1),
  }),
  widen: fc.record({ type: fc.constant('widen' as const), who }),
  hold: fc.record({ type: fc.constant('hold' as const), who }),
  release: fc.record({ type: fc.constant('release' as const), who }),
  refund: fc.record({ type: fc.constant('refund' as const), which: fc.nat(), units: fc.constantFrom(1, 2) }),
  charge: fc.record({ type: fc.constant('charge' as const), who, units: fc.constantFrom(1, 3) }),
}

const event: fc.Arbitrary<Event> = fc.oneof(
  { weight: 12, arbitrary: EVENTS.consume },
  { weight: 3, arbitrary: EVENTS.wait },
  { weight: 6, arbitrary: EVENTS.waitFor },
  { weight: 1, arbitrary: EVENTS.widen },
  { weight: 1, arbitrary: EVENTS.hold },
  { weight: 2, arbitrary: EVENTS.release },
  { weight: 1, arbitrary: EVENTS.refund },
  { weight: 1, arbitrary: EVENTS.charge },
)

/** What puts a lease to the test: it is spent as late as may be, and as soon as may be others take what is free. */
const trial: fc.Arbitrary<Event[]> = fc
  .record({
    who,
    other: who,
    times: fc.constantFrom(1, 5, 10),
    spentAfter: fc.constantFrom(0.5, 0.9, 1, 1.1),
    takenAfter: fc.constantFrom(0, 1),
    end: fc.constantFrom('window' as const, 'longer' as const),
  })
  .map(({ who: tenant, other, times, spentAfter, takenAfter, end }) => [
    // In a log without a lease.
    ...(end === 'longer'
      ? [{ type: 'widen', who: other } as const, { type: 'waitFor', end, offBy: 2 } as const]
      : []),
    { type: 'consume', who: other, cost: 1, times: 1 },
    { type: 'consume', who: tenant, cost: 1, times: 7 },
    { type: 'consume', who: tenant, cost: 1, times: 1 },
    { type: 'waitFor', end: 'lease', offBy: spentAfter - 1 },
    { type: 'consume', who: tenant, cost: 1, times },
    { type: 'waitFor', end, offBy: takenAfter - spentAfter },
    { type: 'consume', who: other, cost: 1, times: 100 },
  ])

const historyOf = (shortestMs: number, longestMs: number) =>
  fc.record<History>({
    limits: fc.array(
      fc.record({
        limit: fc.integer({ min: 5, max: 200 }),
        window: fc.integer({ min: shortestMs, max: longestMs }),
        precision: fc.constantFrom(1, 1, 7, 50),
      }),
      { minLength: 1, maxLength: 2 },
    ),
    longer: fc.record({
      limit: fc.integer({ min: 5, max: 200 }),
      times: fc.constantFrom(1.05, 1.2, 2),
    }),
    fixed: fc.option(
      fc.record({
        limit: fc.integer({ min: 5, max: 200 }),
        window: fc.integer({ min: shortestMs, max: longestMs }),
      }),
      { nil: undefined, freq: 3 },
    ),
    shadow: fc.option(fc.integer({ min: 1, max: 100 }), { nil: undefined }),
    leaseMs: fc.tuple(...Array(LEASING).fill(fc.integer({ min: 2, max: 100 }))) as fc.Arbitrary<number[]>,
    startMs: fc.integer({ min: 1_000_000, max: 2_000_000_000_000 }),
    events: fc
      .array(
        fc.oneof({ weight: 9, arbitrary: event.map((each) => [each]) }, { weight: 1, arbitrary: trial }),
        { minLength: 10, maxLength: 100, size: 'max' },
      )
      .map((all) => all.flat()),
  })

interface Spent {
  readonly limiter: Limiter
  readonly decision: Decision
  /** When; it was charged at the decision's own `atMs`. */
  readonly atMs: number
  /** Whether it was held to the longer window, too. */
  readonly isWide: boolean
  units: number
}

class Scene {
  readonly clock: ManualClock
  readonly limits: readonly Limit[]
  readonly spent: Spent[] = []
  charged = 0
  leased = 0
  readonly #stores: readonly HeldStore[]
  readonly #leasing: readonly ReturnType<typeof withLeases>[]
  readonly #limiters: Limiter[]
  readonly longer: Limit
  /** The limiters that are held to it. */
  readonly #wide = new Map<number, Limiter>()
  readonly #limiterOn: (store: Store, limits?: readonly Limit[]) => Limiter
  readonly auditor: Limiter
  readonly #leaseMs: number
  readonly #answers: Promise<unknown>[] = []

  /** Whether answers come at once, if they are not held. */
  readonly #isNear: boolean

  constructor(history: History, storeOf?: StoreOf) {
    this.clock = new ManualClock(history.startMs)
    this.#isNear = storeOf === undefined
    const inner = storeOf?.(this.clock) ?? memoryStore({ clock: this.clock.now })
    this.limits = [
      ...history.limits.map((limit, i) => {
        const precision = Math.min(limit.precision, limit.window)
        return slidingWindow({ ...limit, precision, name: `sliding${i}` })
      }),
      ...(history.fixed === undefined ? [] : [fixedWindow({ ...history.fixed, name: 'fixed' })]),
      ...(history.shadow === undefined
        ? []
        : [slidingWindow({ limit: history.shadow, window: 300, name: 'shadow', shadow: true })]),
    ]
    this.#stores = Array.from({ length: LEASING + 1 }, () => held(inner))
    this.#leasing = history.leaseMs.map((leaseMs, i) =>
      withLeases(this.#stores[i]!, { leaseMs, clock: this.clock.now }),
    )
    this.#limiterOn = (store, limits = this.limits) =>
      createLimiter({ name: 'history', limits, store, timeoutMs: 60_000 })
    this.#limiters = [...this.#leasing, this.#stores[LEASING]!].map((store) => this.#limiterOn(store))
    const { precisionMs, windowMs } = this.limits[0]!
    const { limit, times } = history.longer
    const longerMs = Math.ceil(times * windowMs)
    this.longer = slidingWindow({ limit, window: longerMs, precision: precisionMs, name: 'longer' })
    const shortestMs = Math.min(...this.limits.map(({ windowMs }) => windowMs))
    this.#leaseMs = Math.min(history.leaseMs[0]!, Math.floor(shortestMs / 10))
    this.auditor = this.#limiterOn(inner, [
      slidingWindow({ limit: 60_000, window: '1h', precision: precisionMs, name: 'auditor' }),
    ])
  }

  async play(next: Event): Promise<void> {
    switch (next.type) {
      case 'wait':
        this.clock.advance(next.ms)
        break
      case 'waitFor':
        this.clock.advance(Math.max(0, this.#msUntil(next.end) + Math.round(next.offBy * this.#leaseMs)))
        break
      case 'hold':
        this.#stores[next.who]!.isHolding = this.#isNear
        break
      case 'release':
        this.#stores[next.who]!.isHolding = false
        this.#stores[next.who]!.release()
        break
      case 'widen':
        this.#widen(next.who)
        break
      case 'charge':
        this.charged += next.units
        this.#answers.push(this.#limiters[next.who]!.charge('k', next.units))
        break
      case 'refund':
        await this.#refund(next.which, next.units)
        break
      case 'consume':
        for (let i = 0; i < next.times; i++) this.#consume(next.who, next.cost)
    }
    // Whatever can be answered without time passing is.
    if (this.#isNear) for (let turn = 0; turn < 12; turn++) await undefined
    else await Promise.all(this.#answers)
  }

  /** Lets everything arrive and everybody return what they hold. */
  async settle(): Promise<void> {
    // What is let through may ask for more.
    for (const store of this.#stores) store.isHolding = false
    for (let round = 0; round < 3; round++) {
      for (const store of this.#stores) store.release()
      for (let turn = 0; turn < 12; turn++) await undefined
    }
    await Promise.all(this.#answers)
    await Promise.all(this.#leasing.map((store) => store.close()))
  }

  close(): void {
    for (const limiter of [...this.#limiters, ...this.#wide.values(), this.auditor]) limiter.close()
  }

  #widen(who: number): void {
    if (this.#wide.has(who)) return
    const store = this.#leasing[who] ?? this.#stores[who]!
    this.#wide.set(who, this.#limiterOn(store, [...this.limits, this.longer]))
  }

  #msUntil(end: 'lease' | 'window' | 'longer' | 'fixed'): number {
    if (end === 'lease') return this.#leaseMs
    if (end === 'longer') return this.longer.windowMs
    const { windowMs } = this.limits[0]!
    if (end === 'window') return windowMs
    const fixed = this.limits.find(({ kind }) => kind.tag === 'f')?.windowMs ?? windowMs
    return fixed - (this.clock.now() % fixed)
  }

  #consume(by: number, cost: number): void {
    const wide = this.#wide.get(by)
    const limiter = wide ?? this.#limiters[by]!
    const answer = limiter.consume('k', { cost }).then((decision) => {
      const { allowed, source } = decision
      if (source === 'lease') this.leased++
      if (!allowed) return
      const atMs = source === 'lease' ? this.clock.now() : decision.atMs
      this.spent.push({ limiter, decision, atMs, isWide: wide !== undefined, units: cost })
    })
    this.#answers.push(answer)
  }

  async #refund(which: number, units: number): Promise<void> {
    // Of several limits one may still hold what has left another: it would be both spent and returned.
    if (this.limits.length > 1) return
    const spent = this.spent[which % this.spent.length]
    if (spent === undefined || spent.units === 0 || spent.isWide) return
    const asked = Math.min(units, spent.units)
    const answer = spent.limiter.refund('k', spent.decision, asked).then((returned) => {
      // What has left its window by then cannot be returned, and was spent.
      spent.units -= returned
    })
    this.#answers.push(answer)
  }
}

function assertNeverOver({ limits, spent }: Scene): void {
  const admissions = spent.map(({ atMs, units }): Admission => ({ atMs, cost: units }))
  for (const { name, limit, windowMs, shadow, kind } of limits) {
    if (shadow) continue
    if (kind.tag !== 'f') {
      const fullest = fullestWindow(admissions, windowMs)
      assert(fullest <= limit, `${name}: ${fullest} of ${limit}`)
      continue
    }
    const units = new Map<number, number>()
    for (const { atMs, cost } of admissions) {
      const window = Math.floor(atMs / windowMs)
      units.set(window, (units.get(window) ?? 0) + cost)
    }
    for (const used of units.values()) assert(used <= limit, `${name}: ${used} of ${limit}`)
  }
}

/** Each request with the earlier ones that the log still has to count for it. */
function* withChargedBefore(
  spent: readonly Spent[],
  longerMs: number,
  shorterMs: number,
): Generator<readonly [Spent, readonly Spent[]]> {
  const inOrder = [...spent].sort((a, b) => a.decision.atMs - b.decision.atMs)
  let neededMs = 0
  let needed: Spent[] = []
  let next = 0
  const forgetUntil = (nowMs: number) => {
    needed = needed.filter(({ atMs }) => nowMs - atMs < neededMs)
    if (needed.length === 0) neededMs = 0
  }
  for (const x of inOrder) {
    const { atMs: nowMs } = x.decision
    for (; inOrder[next]!.decision.atMs < nowMs; next++) {
      const each = inOrder[next]!
      if (each.units === 0) continue
      forgetUntil(each.decision.atMs)
      neededMs = Math.max(neededMs, each.isWide ? longerMs : shorterMs)
      needed.push(each)
    }
    forgetUntil(nowMs)
    yield [x, needed]
  }
}

/**
 * Fails if a widened process was admitted to a full longer window, by the times at which units were spent. Only a
 * process without that window may fill it beyond its limit.
 */
function assertLongerNeverOver({ longer, limits, spent }: Scene): void {
  const { limit, windowMs, name } = longer
  for (const [x, before] of withChargedBefore(spent, windowMs, limits[0]!.windowMs)) {
    if (!x.isWide) continue
    const near = [x, ...before]
      .filter(({ atMs }) => Math.abs(atMs - x.atMs) < windowMs)
      .sort((a, b) => a.atMs - b.atMs)
    let [used, end] = [0, 0]
    for (const { atMs: fromMs, units } of near) {
      if (fromMs > x.atMs) break
      for (; end < near.length && near[end]!.atMs < fromMs + windowMs; end++) used += near[end]!.units
      assert(used <= limit, `${name}: ${used} of ${limit}`)
      used -= units
    }
  }
}

it.each([
  ['memory', 150, undefined],
  ['Redis', 20, redisOf],
] as const)(
  'on %s, by the times at which units were spent, no window is over its limit',
  async (_, runs, storeOf) => {
    let leased = 0
    let admitted = 0
    const property = fc.asyncProperty(historyOf(100, 1000), async (history) => {
      const scene = new Scene(history, storeOf)
      for (const each of history.events) await scene.play(each)
      await scene.settle()
      assertNeverOver(scene)
      assertLongerNeverOver(scene)
      leased += scene.leased
      admitted += scene.spent.length
      scene.close()
    })
    await fc.assert(property, { numRuns: runs })
    expect(leased).toBeGreaterThan(admitted / 100)
  },
)

it('what is not spent is returned, to the unit', async () => {
  let leased = 0
  // In windows so long that nothing leaves them, and a lease lasts for as long as it may.
  const property = fc.asyncProperty(historyOf(600_000, 600_000), async (history) => {
    const scene = new Scene({ ...history, fixed: undefined })
    for (const each of history.events)
      if (each.type !== 'waitFor' || each.end === 'lease') await scene.play(each)
    await scene.settle()
    const { remaining, limits } = await scene.auditor.peek('k')
    const units = scene.spent.reduce((sum, spent) => sum + spent.units, 0)
    assert.equal(limits[0]!.limit - remaining, units + scene.charged)
    leased += scene.leased
    scene.close()
  })
  await fc.assert(property, { numRuns: 80 })
  expect(leased).toBeGreaterThan(400)
})
