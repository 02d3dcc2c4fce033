// tier: integration
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { beforeEach, expect, it } from 'vitest'
import { createLimiter, distinct, type Limit, slidingCounter, slidingWindow } from '../../src/index.ts'
import { redisStore } from '../../src/stores/redis/index.ts'
import { ManualClock } from '../../src/testing/index.ts'
import { ROOT } from '../docs/markdown.ts'
import { useRedis } from '../support/use-redis.ts'

// Ways to count many requests of one key on Redis. docs/limits/distinct.md has the table.

const { redis } = await useRedis()
beforeEach(() => redis.flushall())

const DOCS = readFileSync(join(ROOT, 'docs/limits/distinct.md'), 'utf8')

const LIMIT = 10_000
const WINDOW_MS = 3_600_000
const STEP_MS = 3000
const STEPS = WINDOW_MS / STEP_MS

const WAYS: Readonly<Record<string, Limit>> = {
  '`slidingWindow`': slidingWindow({ limit: LIMIT, window: WINDOW_MS }),
  "`slidingWindow`, `precision: '36s'`": slidingWindow({ limit: LIMIT, window: WINDOW_MS, precision: '36s' }),
  '`slidingCounter`': slidingCounter({ limit: LIMIT, window: WINDOW_MS }),
  '`distinct`, `approximate`, by request id': distinct({
    limit: LIMIT,
    window: WINDOW_MS,
    approximate: true,
  }),
}

/**
 * Requests per step.
 *
 * Each hour has 1.5 times the limit: a burst in the first ten minutes, then a trickle.
 */
const demandAt = (step: number) => (step % STEPS < STEPS / 6 ? 65 : 2)

/** Sends two hours of requests for one key. Returns how many were admitted in each step. */
async function admittedOf(name: string, limit: Limit): Promise<number[]> {
  const clock = new ManualClock(0)
  const store = redisStore(redis, { clock: clock.now })
  const limiter = createLimiter({ limits: [limit], store, timeoutMs: 30_000 })
  const admitted: number[] = []
  for (let step = 0; step < 2 * STEPS; step++) {
    const asked = Array.from({ length: demandAt(step) }, (_, i) =>
      limiter.consume('k', name.includes('distinct') ? { value: `${step}-${i}` } : {}),
    )
    admitted.push((await Promise.all(asked)).filter(({ allowed }) => allowed).length)
    clock.advance(STEP_MS)
  }
  return admitted
}

const sum = (numbers: readonly number[]) => numbers.reduce((a, b) => a + b, 0)
/** The most requests admitted in any hour. */
const fullest = (admitted: readonly number[]) =>
  Math.max(...admitted.map((_, i) => sum(admitted.slice(i, i + STEPS))))

/** Reads the numbers in a row of the docs. */
function rowOf(name: string): readonly [bytes: number, fullest: number, total: number] {
  const row = DOCS.split('\n').find((line) => line.startsWith(`| ${name} |`))!
  const [bytes, most, total] = row
    .split(' | ')
    .slice(1)
    .map((cell) => Number(cell.replaceAll(',', '')))
  return [bytes!, most!, total!]
}

it.each(Object.entries(WAYS))('%s is as the table says', async (name, limit) => {
  const [most, ...counts] = rowOf(name)
  const admitted = await admittedOf(name, limit)
  expect([fullest(admitted), sum(admitted)]).toEqual(counts)
  const keys = await redis.keys('*')
  const bytes = sum(await Promise.all(keys.map(async (key) => (await redis.memory('USAGE', key)) ?? 0)))
  expect(bytes).toBeLessThanOrEqual(most)
})
