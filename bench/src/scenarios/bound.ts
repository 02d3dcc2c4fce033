import assert from 'node:assert/strict'
import type { Redis } from 'ioredis'
import { createLimiter, type Decision, type Limiter, slidingWindow } from 'slidegate'
import { redisStore } from 'slidegate/redis'
import { median } from '../measure.ts'
import { copyTo, onlyKey } from '../redis/copies.ts'
import { scriptMicroseconds } from '../redis/info.ts'
import { withRedis } from '../redis/with-redis.ts'
import type { Figure, Scenario, Target } from '../scenario.ts'

/** The maximum number of records in a log. The limit needs exactly this number, with one record per request. */
const RECORDS = 65_536
const RECORD_BYTES = 12
const WINDOW_MS = 120_000

/** Maximum number of later records that a refund rewrites. */
const REWRITTEN = 4096

/** Units of the refunded request. Each sample refunds one. */
const REFUNDABLE_UNITS = 1000

/** Requests between two reads of the log while it is filled. */
const STEP = 512

const KEY = 'user:1'
const QUICK: Target = { atMost: 200 }
const SELDOM: Target = { atMost: 5000 }

export const bound: Scenario = {
  name: 'bound',
  title: 'Script time within Redis for a log with the maximum of 65,536 records',
  run: ({ samples }) => withRedis((redis) => measure(redis, samples)),
}

interface Bench {
  readonly redis: Redis
  readonly limiter: Limiter
  /** The limiter's clock. */
  readonly clock: { nowMs: number }
  /** Time of the first record. There is a record in every millisecond after it. */
  readonly startMs: number
}

async function measure(redis: Redis, samples: number): Promise<Figure[]> {
  const startMs = Date.now()
  const clock = { nowMs: startMs }
  const limiter = createLimiter({
    name: 'bench',
    limits: [slidingWindow({ limit: RECORDS, window: WINDOW_MS, precision: 1 })],
    store: redisStore(redis, { clock: () => clock.nowMs }),
    timeoutMs: 60_000,
  })
  const bench: Bench = { redis, limiter, clock, startMs }
  const { log, refundable, tooOld } = await fill(bench)
  const enlarging = await lastEnlargement(bench, log)
  await redis.copy(log, 'full')

  // Half of the records have expired, and the next write must drop them.
  const half = startMs + WINDOW_MS + RECORDS / 2
  const used = RECORDS / 2 - 1 + REFUNDABLE_UNITS - 1
  const sampled = async (from: string, atMs: number, call: () => Promise<void>): Promise<number[]> => {
    const microseconds: number[] = []
    // The first call may have to load the script.
    for (let i = 0; i <= samples; i++) {
      await copyTo(redis, from, [log])
      clock.nowMs = atMs
      const time = await scriptMicroseconds(redis, call)
      if (i > 0) microseconds.push(time)
    }
    return microseconds
  }

  const denied = await sampled('full', half, async () => {
    const { allowed, remaining, retryAfterMs } = await limiter.consume(KEY, { cost: RECORDS - 1 })
    assert(!allowed && retryAfterMs > 0 && retryAfterMs <= WINDOW_MS)
    assert.equal(remaining, RECORDS - used)
  })
  const admitted = await sampled('full', half, async () => {
    const { allowed, remaining } = await limiter.consume(KEY)
    assert(allowed)
    assert.equal(remaining, RECORDS - used - 1)
  })
  const enlarged = await sampled('enlarging', enlarging.atMs, async () => {
    assert((await limiter.consume(KEY)).allowed)
  })
  assert((await redis.strlen(log)) >= RECORD_BYTES * (RECORDS - 1), 'the log has its maximum size')

  const justNow = startMs + RECORDS
  await copyTo(redis, 'full', [log])
  clock.nowMs = justNow
  assert.equal(await limiter.refund(KEY, tooOld), 0, 'a refund past the bound is refused')
  const refunded = await sampled('full', justNow, async () => {
    assert.equal(await limiter.refund(KEY, refundable, 1), 1)
  })

  return [
    figureOf('half expired, denied', denied, QUICK),
    figureOf('half expired, admitted', admitted, QUICK),
    figureOf('the call that enlarges the ring to its maximum', enlarged, SELDOM),
    figureOf('refund that rewrites 4,096 records', refunded, SELDOM),
  ]
}

interface Filled {
  readonly log: string
  /** The oldest decision that can be refunded. `tooOld` is the one before it. */
  readonly refundable: Decision
  readonly tooOld: Decision
}

/**
 * Fills the log with a record per millisecond.
 *
 * Stores in `before` a copy of the log before the step in which it last grew, and in `before:number` the number of that step's
 * first request.
 */
async function fill({ redis, limiter, clock, startMs }: Bench): Promise<Filled> {
  const refundableNumber = RECORDS - 1 - REWRITTEN
  let refundable: Decision | undefined
  let tooOld: Decision | undefined
  let log: string | undefined
  let size = 0
  for (let first = 0; first < RECORDS; first += STEP) {
    if (log !== undefined) await redis.copy(log, 'candidate', 'REPLACE')
    const requests = Array.from({ length: STEP }, async (_, i) => {
      const number = first + i
      clock.nowMs = startMs + number
      if (number === refundableNumber) refundable = await limiter.consume(KEY, { cost: REFUNDABLE_UNITS })
      else if (number === refundableNumber - 1) tooOld = await limiter.consume(KEY)
      else await limiter.charge(KEY, 1)
    })
    await Promise.all(requests)
    log ??= await onlyKey(redis, 'slidegate:*')
    const grown = await redis.strlen(log)
    if (grown > size && first > 0) {
      await redis.rename('candidate', 'before')
      await redis.set('before:number', first)
    }
    size = grown
  }
  assert(refundable?.allowed && tooOld?.allowed && log !== undefined)
  assert(size >= RECORD_BYTES * (RECORDS - 1), `Expected a log of the maximum size, got ${size} bytes`)
  return { log, refundable, tooOld }
}

/** Stores the log just before its last enlargement as `enlarging`. Returns the time of that request. */
async function lastEnlargement(
  { redis, limiter, clock, startMs }: Bench,
  log: string,
): Promise<{ atMs: number }> {
  const first = Number(await redis.get('before:number'))
  await redis.rename(log, 'kept')
  await redis.copy('before', log)
  const size = await redis.strlen(log)
  let number = first
  for (; number < first + STEP; number++) {
    await redis.copy(log, 'enlarging', 'REPLACE')
    clock.nowMs = startMs + number
    await limiter.charge(KEY, 1)
    if ((await redis.strlen(log)) > size) break
  }
  assert(number < first + STEP, 'the log grows at the same request again')
  await redis.rename('kept', log)
  return { atMs: startMs + number }
}

function figureOf(name: string, microseconds: readonly number[], target: Target): Figure {
  return {
    name,
    value: median(microseconds),
    unit: 'µs',
    target,
    spread: microseconds,
    note: `median of ${microseconds.length} calls`,
    raw: { microseconds },
  }
}
