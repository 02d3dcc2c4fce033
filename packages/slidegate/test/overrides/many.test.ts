// tier: integration
import { beforeEach, describe, expect, it } from 'vitest'
import { createLimiter, type Limiter, type LimiterOptions, slidingWindow } from '../../src/index.ts'
import { MAX_NOTES } from '../../src/limits/notes.ts'
import { outcomesOf } from '../../src/stores/call.ts'
import { redisStore } from '../../src/stores/redis/index.ts'
import type { NoteOp, NotesOp, Op, Outcome } from '../../src/stores/store.ts'
import { useRedis } from '../support/use-redis.ts'
import { clock, inRedis, processOn, vip } from './tables.ts'

// As many overrides as there may be: a process reads them page by page.

const { redis } = await useRedis()
beforeEach(() => redis.flushall())

const tableKey = async () => (await redis.keys('*~overrides:n'))[0]!

/** Overrides like the one that is set for "k0", for so many keys. */
async function fill(count: number): Promise<void> {
  const store = inRedis(redis)
  let like: NoteOp | undefined
  const process = processOn(store, {
    apply: async (op) => {
      if (op.type === 'note') like = op
      return (await outcomesOf(store, [op]))[0]
    },
  })
  await process.set('k0', vip)
  for (let first = 1; first < count; first += 1000) {
    const ops = Array.from({ length: Math.min(1000, count - first) }, (_, i): NoteOp => {
      const name = `k${first + i}`
      return { ...like!, since: undefined, name, text: like!.text!.replace('"k0"', JSON.stringify(name)) }
    })
    await outcomesOf(store, ops)
  }
}

const limiterWith = (options: Partial<LimiterOptions> = {}): Limiter =>
  createLimiter({
    name: 'api',
    limits: [slidingWindow({ limit: 10, window: '1m' })],
    store: redisStore(redis),
    overrides: true,
    timeoutMs: 30_000,
    ...options,
  } as LimiterOptions)

/** Of the script, made meanwhile: how many, and the microseconds that most of them took at most. */
async function callsOf(act: () => Promise<unknown>): Promise<{ calls: number; micros: number }> {
  await redis.config('SET', 'slowlog-log-slower-than', '0', 'slowlog-max-len', '1000')
  await redis.slowlog('RESET')
  await act()
  const log = (await redis.slowlog('GET', '1000')) as [number, number, number, string[]][]
  await redis.config('SET', 'slowlog-log-slower-than', '10000')
  const calls = log.filter(([, , , words]) => words[0]!.toLowerCase() === 'evalsha')
  // Redis may have to wait for the processor: a few may take any time.
  const micros = calls.map(([, , micros]) => micros).toSorted((a, b) => a - b)
  return { calls: calls.length, micros: micros[Math.floor(calls.length / 2)]! }
}

describe(`${MAX_NOTES} overrides`, () => {
  it('are known to a process that starts, and no call for them takes long', async () => {
    await fill(MAX_NOTES)
    const errors: unknown[] = []
    const limiter = limiterWith().on('storeError', ({ error }) => errors.push(error))
    const keys = Array.from({ length: 20 }, (_, i) => `k${i * 500 + 7}`)
    const start = await callsOf(async () => {
      const decisions = await Promise.all([...keys, 'other'].map((key) => limiter.consume(key)))
      expect(decisions.map(({ remaining }) => remaining)).toEqual([...keys.map(() => 999), 9])
    })
    expect(errors).toEqual([])
    expect(start.calls).toBeLessThan(70)
    expect(start.micros).toBeLessThan(10_000)
    expect(await limiter.overrides.list()).toHaveLength(MAX_NOTES)
    // The table is full, and nothing of it has expired.
    const full = await callsOf(async () => {
      for (let i = 0; i < 20; i++) {
        await expect(limiter.overrides.set('other', vip)).rejects.toMatchObject({ reason: 'full' })
      }
    })
    expect(full.micros).toBeLessThan(10_000)
    limiter.close()
  })
})

describe('while they are read, page by page,', () => {
  /** A process whose pages are counted, and before each of which something may happen. */
  function slowProcess(before: (page: number) => Promise<unknown>) {
    const store = inRedis(redis)
    const pages: NotesOp[] = []
    const process = processOn(store, {
      apply: async (op: Op): Promise<Outcome> => {
        if (op.type === 'notes') {
          await before(pages.length)
          pages.push(op)
        }
        return (await outcomesOf(store, [op]))[0]
      },
    })
    return { ...process, pages }
  }

  it('what is set and deleted is known at the end', async () => {
    await fill(1000)
    const writer = processOn(inRedis(redis))
    await writer.table.list()
    const reader = slowProcess(async (page) => {
      if (page === 0 || page > 3) return
      await writer.set(`new${page}`, vip)
      await writer.table.delete(undefined, `k${page}`)
      await writer.set(`k${page + 10}`, [slidingWindow({ limit: 5, window: '1m', name: 'five' })])
    })
    const known = await reader.table.list()
    expect(reader.pages.filter(({ from }) => from !== undefined).length).toBeGreaterThan(2)
    const list = await writer.table.list()
    expect(list).toHaveLength(1000)
    expect(new Set(known.map(({ key }) => key))).toEqual(new Set(list.map(({ key }) => key)))
    for (const page of [1, 2, 3]) {
      expect(reader.table.of(undefined, `k${page + 10}`)![0]!.name).toBe('five')
      expect(reader.table.of(undefined, `new${page}`)!).toEqual(vip)
    }
  })

  it('and more is changed than is remembered, what was told stands, and all is read again', async () => {
    await fill(1000)
    const writer = processOn(inRedis(redis))
    await writer.table.list()
    let rounds = 0
    const reader = slowProcess(async (page) => {
      if (page !== 2 || rounds++ > 0) return
      for (let i = 0; i < 260; i++) await writer.set('k5', i % 2 === 0 ? vip : [slidingWindow(trialLike(i))])
    })
    await reader.ask('k7')
    expect(await reader.ask('k7')).toEqual(vip)
    const { length } = reader.pages
    clock.advance(1001)
    expect((await reader.ask('k5'))![0]!.name).toBe('n259')
    expect(reader.pages.slice(length).filter(({ from }) => from !== undefined).length).toBeGreaterThan(2)
    expect(await reader.table.list()).toHaveLength(1000)
  })

  it('nothing is in force before all is known; if a page fails what was known stands', async () => {
    await fill(1000)
    let failing = 2
    const reader = slowProcess(async (page) => {
      expect(reader.table.of(undefined, 'k7')).toBeUndefined()
      if (page === failing) throw new Error('no answer')
    })
    await reader.table.refresh()
    expect(reader.table.of(undefined, 'k7')).toBeUndefined()
    failing = -1
    clock.advance(501)
    expect(reader.table.isFresh()).toBe(true)
    await reader.table.refresh()
    expect(reader.table.of(undefined, 'k7')!).toEqual(vip)
  })

  it('another server, which counts pages otherwise, does not pass for the same', async () => {
    await fill(1000)
    const errors: unknown[] = []
    const store = inRedis(redis)
    let isElsewhere = true
    const { table } = processOn(store, {
      damaged: (error) => errors.push(error),
      apply: async (op) => {
        // As if the places of what follows were to be met before.
        const op2 = op.type === 'notes' && op.from !== undefined && isElsewhere ? { ...op, from: '1' } : op
        const [outcome] = await outcomesOf(store, [op2])
        if (op2 === op || outcome === undefined || !('isAll' in outcome)) return outcome
        const { next: _, ...last } = outcome
        return last
      },
    })
    await expect(table.list()).rejects.toMatchObject({ reason: 'error' })
    expect(errors).toHaveLength(1)
    isElsewhere = false
    // Where others write to the hash, there is more in it than is told: so it stays.
    await redis.hset(await tableKey(), ' x', 'of others', ' y', 'of others')
    await expect(table.list()).rejects.toMatchObject({ reason: 'error' })
    expect(await table.list()).toHaveLength(1000)
    expect(await table.list()).toHaveLength(1000)
  })
})

function trialLike(i: number) {
  return { limit: 3, window: '1m', name: `n${i}` } as const
}

describe('what is damaged is told, and the rest is in force:', () => {
  it('notes, and those of a kind that is not known', async () => {
    await fill(300)
    await redis.hset(
      await tableKey(),
      'k5',
      'x',
      'k6',
      '1 0 {"key":',
      'k7',
      '1 0 {"limits":[{"kind":"new"}]}',
    )
    const errors: Error[] = []
    const limiter = limiterWith().on('storeError', ({ error }) => errors.push(error))
    expect((await limiter.consume('k4')).remaining).toBe(999)
    for (const key of ['k5', 'k6', 'k7']) expect((await limiter.consume(key)).remaining).toBe(9)
    expect(errors).toEqual([
      expect.objectContaining({
        code: 'store_unavailable',
        reason: 'state',
        message: expect.stringMatching(/^the override of "k[567]" cannot be read, and 2 more$/),
      }),
    ])
    expect(await limiter.overrides.list()).toHaveLength(297)
    await limiter.overrides.set('k5', vip)
    expect((await limiter.overrides.get('k5'))!.limits).toEqual(vip)
    expect(errors).toHaveLength(1)
    limiter.close()
  })

  it('of one that was known before, what was known stands', async () => {
    await fill(300)
    const errors: unknown[] = []
    const { table, ask } = processOn(inRedis(redis), { damaged: (error) => errors.push(error) })
    await ask('k5')
    await redis.hset(await tableKey(), 'k5', 'x')
    const writer = processOn(inRedis(redis))
    for (let i = 0; i < 260; i++) await writer.set('k9', i % 2 === 0 ? vip : [slidingWindow(trialLike(i))])
    clock.advance(1001)
    await ask('k9')
    expect(table.of(undefined, 'k9')![0]!.name).toBe('n259')
    expect(table.of(undefined, 'k5')!).toEqual(vip)
    expect(errors).toHaveLength(1)
  })

  it('the whole hash, once for each read', async () => {
    await fill(3)
    await redis.hset(await tableKey(), '', 'x')
    const errors: Error[] = []
    const limiter = limiterWith().on('storeError', ({ error }) => errors.push(error))
    for (let i = 0; i < 5; i++) expect((await limiter.consume('k1')).remaining).toBe(9 - i)
    expect(errors).toEqual([expect.objectContaining({ reason: 'state' })])
    limiter.close()
  })
})

describe('a function that tells limits only by a request', () => {
  const needsRequest = () => {
    let calls = 0
    const limits = (_: string, request: unknown) => {
      calls++
      if (request === undefined) throw new TypeError('no request')
      return [slidingWindow({ limit: 10, window: '1m' })]
    }
    return { limits, calls: () => calls }
  }

  it.each(['memory', 'redis'])('is no obstacle to overrides, in %s', async (name) => {
    const { limits } = needsRequest()
    const limiter = limiterWith({ limits, ...(name === 'memory' && { store: undefined }) } as object)
    await limiter.overrides.set('k', vip)
    expect((await limiter.consume('k', { request: 1 })).remaining).toBe(999)
    expect(await limiter.overrides.delete('k')).toBe(true)
    // An override of another precision has a log of its own.
    expect((await limiter.consume('k', { request: 1 })).remaining).toBe(9)
    limiter.close()
  })

  it.each([[undefined], ['gold'], [[{}]], [Promise.resolve([])]])(
    'nor is one that tells %s',
    async (told) => {
      const limiter = limiterWith({ limits: (() => told) as never })
      await limiter.overrides.set('k', vip)
      expect((await limiter.consume('k')).remaining).toBe(999)
      expect(await limiter.overrides.delete('k')).toBe(true)
      limiter.close()
    },
  )

  it('is not asked how many wait', () => {
    const { limits, calls } = needsRequest()
    const limiter = limiterWith({ limits })
    expect(limiter.waiting('k')).toMatchObject({ length: 0 })
    expect(limiter.waiting()).toMatchObject({ length: 0 })
    expect(calls()).toBe(0)
    limiter.close()
  })
})
