// tier: integration

import fc from 'fast-check'
import { Redis } from 'ioredis'
import { afterAll, expect } from 'vitest'
import { calendarWindow } from '../../src/calendar.ts'
import {
  concurrency,
  createLimiter,
  type Decision,
  distinct,
  fixedWindow,
  type Limiter,
  type LimiterOptions,
  type Permit,
  type Reservation,
  SlidegateError,
  StoreUnavailableError,
  slidingCounter,
  slidingWindow,
  tokenBucket,
  WaitError,
} from '../../src/index.ts'
import { redisStore } from '../../src/stores/redis/index.ts'
import { ManualClock } from '../../src/testing/index.ts'
import { listed } from '../support/overrides.ts'
import { useRedis } from '../support/use-redis.ts'
import { isDecision } from './calls.ts'
import { damages, dumpAll, harm, restoreAll, type Stored } from './damage.ts'
import { fuzz } from './harness.ts'
import { expectSense } from './sense.ts'

const { server, redis } = await useRedis()

// Damaging state needs more rights than the store has.
await redis.call('ACL', 'SETUSER', 'anybody', 'on', 'nopass', 'allkeys', 'allcommands')
const control = new Redis(server.port, { username: 'anybody', password: 'any' })
afterAll(() => control.quit())

const window = '1h'
const LIMIT = 40
const START_MS = 1_700_000_000_000
const sliding = slidingWindow({ limit: LIMIT, window })
const ban = { after: 5, within: '1h', for: ['1m', '1h'] } as const

/** All kinds of logs, for all uses. */
const FORMS: Readonly<Record<string, Partial<LimiterOptions>>> = {
  'a sliding window': { limits: [sliding] },
  'windows of one log': { limits: [sliding, slidingWindow({ limit: LIMIT - 1, window: '1m' })] },
  'a coarse window': { limits: [slidingWindow({ limit: LIMIT, window, precision: 50 })] },
  'a fixed window': { limits: [fixedWindow({ limit: LIMIT, window })] },
  'a window from the first hit': { limits: [fixedWindow({ limit: LIMIT, window, align: 'first-hit' })] },
  'a calendar window': {
    limits: [calendarWindow({ limit: LIMIT, unit: 'day', timeZone: 'Asia/Kathmandu' })],
  },
  'a token bucket': { limits: [tokenBucket({ capacity: LIMIT, refill: 1, interval: '1m' })] },
  'a sliding counter': { limits: [slidingCounter({ limit: LIMIT, window })] },
  'a sorted set': { limits: [slidingWindow({ limit: LIMIT, window, log: 'zset' })] },
  'a stream': { limits: [slidingWindow({ limit: LIMIT, window, log: 'stream' })] },
  holders: { limits: [concurrency({ limit: LIMIT, ttl: window })] },
  values: { limits: [distinct({ limit: LIMIT, window })] },
  'sketched values': { limits: [distinct({ limit: LIMIT, window, approximate: true })] },
  'several logs': {
    limits: [
      sliding,
      slidingWindow({ limit: LIMIT, window, log: 'zset', name: 'set', shadow: true }),
      slidingWindow({ limit: LIMIT, window, log: 'stream', name: 'stream' }),
      tokenBucket({ capacity: LIMIT, refill: 1, interval: '1m', name: 'bucket' }),
    ],
    ban,
  },
  'a ban': { limits: [sliding], ban },
  dimensions: {
    dimensions: { user: [sliding], ip: [fixedWindow({ limit: LIMIT, window })] },
    ban: { user: ban },
  } as object,
  overrides: { limits: [sliding], overrides: true },
}

interface Filled {
  readonly form: string
  readonly stored: readonly Stored[]
  readonly decision: Decision
  readonly reservation: Reservation | undefined
  readonly atMs: number
}

const clock = new ManualClock(START_MS)

function limiterOf(form: string, more: Partial<LimiterOptions> = {}): Limiter {
  return createLimiter({
    ...FORMS[form],
    ...more,
    store: redisStore(redis, { clock: clock.now }),
    timeoutMs: 60_000,
    logger: false,
    breaker: { minRequests: 2 ** 20 },
  } as LimiterOptions)
}

function keyOf(form: string, name: string): string {
  return form === 'dimensions' ? ({ user: name, ip: `ip-${name}` } as unknown as string) : name
}

/** Fills a key with all kinds of state: charges, denials, a ban, a reservation. */
async function fill(form: string): Promise<Filled> {
  await control.flushall()
  const limiter = limiterOf(form)
  const bad = keyOf(form, 'bad')
  const options = (n: number) => {
    if (form.endsWith('values')) return { value: `v${n}` }
    return form === 'holders' ? { requestId: `r${n}` } : undefined
  }
  let decision!: Decision
  for (let n = 0; n < 30; n++) {
    decision = await limiter.consume(bad, options(n))
    clock.advance(n % 7)
  }
  const isKept = /set|stream|holders|values|logs/.test(form)
  const reservation = isKept ? undefined : await limiter.reserve(bad, 2)
  const tooMuch = { ...options(99), ...(!form.endsWith('values') && { cost: LIMIT - 1 }) }
  for (let n = 0; n < 3; n++) await limiter.consume(bad, tooMuch)
  if (FORMS[form]!.overrides) {
    for (const key of ['bad', 'other']) await limiter.overrides.set(key, { limit: LIMIT, window: '2h' })
    await limiter.overrides.set('brief', 'exempt', { ttl: '1h' })
    await limiter.overrides.delete('other')
    await limiter.consume(bad)
    await limiter.block(bad, '1m')
  }
  const stored = await dumpAll(control)
  limiter.close()
  return { form, stored, decision, reservation, atMs: clock.now() }
}

/** All stored logs and tables. */
let corpus: readonly Filled[] = []
let pool: readonly Stored[] = []

const round = async () => {
  if (corpus.length === 0) {
    const filled: Filled[] = []
    for (const form of Object.keys(FORMS)) filled.push(await fill(form))
    corpus = filled
    pool = filled.flatMap(({ stored }) => stored)
  }
  return async () => {}
}

/** CPU seconds, far more than any input needs. */
const SLOW_S = 1.5
/** The most that stored data may grow, in bytes. A sorted set has at most 10,000 entries. */
const MAX_GROWTH = 4 * 2 ** 20

type Ask = (limiter: Limiter, key: string, filled: Filled) => Promise<unknown>

const broughtTo = (form: string) => (form.endsWith('values') ? { value: 'new' } : {})

let requests = 0

/** A slot needs a name. */
const named = (form: string) => (form === 'holders' ? { requestId: `new${requests++}` } : broughtTo(form))

const ASKS: Readonly<Record<string, Ask>> = {
  consume: (limiter, key, { form }) => limiter.consume(key, named(form)),
  'consume much': (limiter, key, { form }) => limiter.consume(key, { cost: LIMIT - 1, ...named(form) }),
  'consume many': (limiter, key, { form }) =>
    limiter.consumeMany(Array.from({ length: 3 }, () => ({ key, cost: 7, ...named(form) }))),
  'consume again': (limiter, key, { form }) =>
    limiter.consume(key, /^a sorted|^holders/.test(form) ? { requestId: 'mine' } : broughtTo(form)),
  peek: (limiter, key, { form }) => limiter.peek(key, { cost: LIMIT / 2, ...broughtTo(form) }),
  charge: (limiter, key, { form }) => limiter.charge(key, 3, broughtTo(form)),
  'charge all': (limiter, key, { form }) => limiter.charge(key, 2 ** 46, broughtTo(form)),
  refund: (limiter, key, { decision }) => limiter.refund(key, decision),
  reserve: (limiter, key) => limiter.reserve(key, 3),
  'settle for more': (limiter, _, { reservation }) => limiter.settle(reservation?.token ?? '', 9),
  'settle for less': (limiter, _, { reservation }) => limiter.settle(reservation?.token ?? '', 1),
  acquire: async (limiter, key) => {
    const permit: Permit = await limiter.acquire(key)
    await permit.extend()
    await permit.release()
    return permit
  },
  list: (limiter, key) => limiter.list(key),
  explain: (limiter, key, { form }) => limiter.explain(key, { ...broughtTo(form), charges: true }),
  isBlocked: (limiter, key) => limiter.isBlocked(blockable(key)),
  block: (limiter, key) => limiter.block(blockable(key), '1m'),
  unblock: (limiter, key) => limiter.unblock(blockable(key)),
  wait: (limiter, key, { form }) => limiter.wait(key, { maxWaitMs: 0, ...broughtTo(form) }),
  'set an override': (limiter, key) => limiter.overrides.set(key, { limit: LIMIT, window: '3h' }),
  exempt: (limiter, key) => limiter.overrides.set(key, 'exempt', { ttl: '2h' }),
  'get an override': (limiter, key) => limiter.overrides.get(key),
  'delete an override': (limiter, key) => limiter.overrides.delete(key),
  'list overrides': (limiter) => listed(limiter),
}

function blockable(key: string): string {
  return typeof key === 'string' ? key : ({ user: (key as { user: string }).user } as never)
}

/** Checks a result. Errors must be about the request or the damaged state, and never look like a failure of Redis. */
function expectUsable(name: string, result: PromiseSettledResult<unknown>, allowed: number): void {
  if (result.status === 'fulfilled') {
    for (const value of Array.isArray(result.value) ? result.value : [result.value]) {
      if (isDecision(value)) expectSense(value)
    }
    return
  }
  const error: unknown = result.reason
  if (error instanceof StoreUnavailableError && error.reason === 'invalid_state') return
  // Not every limiter supports every operation, and one with damaged state may report that late.
  if (error instanceof SlidegateError || error instanceof WaitError) return
  throw new Error(`${name} (${allowed})`, { cause: error })
}

/** Returns the units left of a healthy key after this many requests. */
function leftOf(form: string, made: number): number {
  if (form === 'values') return LIMIT - 1
  // The estimate of a sketch is one unit too high.
  if (form === 'sketched values') return LIMIT - 2
  return (form === 'windows of one log' ? LIMIT - 1 : LIMIT) - made
}

/** Returns the CPU seconds that the server has used. Time spent waiting for a CPU doesn't count. */
async function workedFor(): Promise<number> {
  const seconds = (await control.info('cpu')).matchAll(/^used_cpu_(?:sys|user):([\d.]+)/gm)
  return Array.from(seconds, ([, each]) => Number(each)).reduce((sum, each) => sum + each, 0)
}

async function bytesStored(): Promise<number> {
  const keys = await control.keys('*')
  const sizes = await Promise.all(keys.map((key) => control.memory('USAGE', key)))
  return sizes.reduce<number>((sum, size) => sum + (size ?? 0), 0)
}

fuzz(
  'stored bytes',
  fc.record({
    form: fc.nat(Object.keys(FORMS).length - 1),
    which: fc.nat(),
    damages: fc.array(damages, { minLength: 1, maxLength: 2 }),
    asks: fc.array(fc.constantFrom(...Object.keys(ASKS)), { minLength: 1, maxLength: 5 }),
    laterMs: fc.constantFrom(0, 0, 1, 500, 60_000, 3_599_000, 3_600_001, 86_400_000, -500, -3_600_000),
  }),
  async ({ form, which, damages, asks, laterMs }) => {
    const filled = corpus[form]!
    clock.set(filled.atMs)
    await restoreAll(control, filled.stored)
    const stored = filled.stored[which % filled.stored.length]!
    for (const damage of damages) await harm(control, stored, damage, pool)
    const before = await bytesStored()
    const workedBefore = await workedFor()
    clock.advance(laterMs)

    const limiter = limiterOf(filled.form)
    const isOverride = /:o$|:~overrides$/.test(stored.key)
    const bad = keyOf(filled.form, 'bad')
    const beside = keyOf(filled.form, 'beside')
    let made = 0
    for (const name of asks) {
      const healthy = () => limiter.consume(beside, named(filled.form))
      const [one, damaged, other] = await Promise.allSettled([
        healthy(),
        (async () => ASKS[name]!(limiter, bad, filled))(),
        healthy(),
      ])
      made += 2
      const left = leftOf(filled.form, made)
      const remaining = [one, other].map((each) =>
        each!.status === 'fulfilled' ? each.value.remaining : each!.reason,
      )
      expect(remaining[1]).toBe(left)
      expectUsable(name, damaged!, made)
    }
    const worked = (await workedFor()) - workedBefore
    if (worked > SLOW_S) throw new Error(`Redis used ${worked} s of CPU`)
    const grown = (await bytesStored()) - before
    if (grown > MAX_GROWTH) throw new Error(`stored data grew by ${grown} bytes`)

    // A reset keeps overrides.
    if (!isOverride) {
      await limiter.unblock(blockable(bad)).catch(() => {})
      await limiter.reset(bad)
      const { allowed, remaining } = await limiter.consume(bad, named(filled.form))
      if (!allowed || remaining < LIMIT - 2) throw new Error(`${remaining} units are left after a reset`)
    }
    limiter.close()
  },
  round,
)
