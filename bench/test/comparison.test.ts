import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import fastifyRateLimit from '@fastify/rate-limit'
import { ThrottlerStorageService } from '@nestjs/throttler'
import { Ratelimit } from '@upstash/ratelimit'
import { Redis as UpstashRedis } from '@upstash/redis'
import express from 'express'
import { rateLimit as expressRateLimit } from 'express-rate-limit'
import { fastify } from 'fastify'
import { Redis } from 'ioredis'
import { RateLimiterMemory, type RateLimiterRes } from 'rate-limiter-flexible'
import { afterAll, beforeAll, beforeEach, describe, expect, it, onTestFinished, vi } from 'vitest'
import { createLimiter, memoryStore, slidingWindow } from '../../packages/slidegate/src/index.ts'
import { redisStore } from '../../packages/slidegate/src/stores/redis/index.ts'
import { ROOT } from '../../packages/slidegate/test/docs/markdown.ts'
import { type OpenRedis, startOpenRedis } from '../../packages/slidegate/test/docs/open-redis.ts'
import { fullestWindow } from '../../packages/slidegate/test/processes/fullest-window.ts'
import type { PeerLimiter } from '../src/peers/peer.ts'
import { REDIS_PEERS } from '../src/peers/redis.ts'
import { measuredText } from '../src/report/text.ts'
import type { Results } from '../src/results.ts'
import { folderOf, installedVersion, lockedVersion } from './installed.ts'
import { START, setDate } from './migrate/fake-date.ts'
import { serve } from './migrate/serve.ts'
import { startUpstashShim, type UpstashShim } from './upstash-shim.ts'

// Tests the statements of docs/comparison.md on the packages themselves.

const PAGE = readFileSync(join(ROOT, 'docs/comparison.md'), 'utf8')

const OURS = 'slidegate'
const [LIMIT, WINDOW_MS] = [10, 60_000]
const limits = [slidingWindow({ limit: LIMIT, window: WINDOW_MS })]

let open: OpenRedis
let shim: UpstashShim
beforeAll(async () => {
  open = await startOpenRedis()
  shim = await startUpstashShim(open.redis)
})
beforeEach(async () => {
  await open.redis.flushall()
})
afterAll(async () => {
  await shim.close()
  await open.stop()
})

/** Makes a request for one key. Returns whether it was admitted, else when to retry. */
type Ask = (cost?: number) => Promise<{ readonly isAdmitted: boolean; readonly retryMs: number }>

function upstash(): Ratelimit {
  const { UPSTASH_REDIS_REST_URL: url, UPSTASH_REDIS_REST_TOKEN: token } = shim.env
  const redis = new UpstashRedis({ url: url!, token: token! })
  const limiter = Ratelimit.slidingWindow(LIMIT, '60 s')
  // Its default timeout of 5 s would admit requests on a slow machine.
  return new Ratelimit({ redis, limiter, ephemeralCache: false, timeout: 60_000 })
}

/** Each package with its defaults and a limit of 10 per minute. */
const BY_DATE: Readonly<Record<string, () => Ask | Promise<Ask>>> = {
  [OURS]() {
    const limiter = createLimiter({ limits, store: memoryStore({ clock: () => Date.now() }) })
    return async (cost = 1) => {
      const { allowed, retryAfterMs } = await limiter.consume('ada', { cost })
      return { isAdmitted: allowed, retryMs: retryAfterMs }
    }
  },
  'rate-limiter-flexible'() {
    const limiter = new RateLimiterMemory({ points: LIMIT, duration: WINDOW_MS / 1000 })
    return async (cost = 1) => {
      const answer = await limiter.consume('ada', cost).catch((reason: RateLimiterRes) => reason)
      return { isAdmitted: answer.consumedPoints <= LIMIT, retryMs: answer.msBeforeNext }
    }
  },
  async 'express-rate-limit'() {
    const app = express()
    app.use(expressRateLimit({ limit: LIMIT, windowMs: WINDOW_MS }), (_req, res) => void res.end())
    const ask = await serve(app)
    return async () => {
      const { status, headers } = await ask()
      return { isAdmitted: status === 200, retryMs: 1000 * Number(headers.get('retry-after')) }
    }
  },
  async '@fastify/rate-limit'() {
    const app = fastify()
    onTestFinished(() => app.close())
    await app.register(fastifyRateLimit, { max: LIMIT, timeWindow: WINDOW_MS })
    app.get('/', async () => 'hello')
    return async () => {
      const { statusCode, headers } = await app.inject('/')
      return { isAdmitted: statusCode === 200, retryMs: 1000 * Number(headers['retry-after']) }
    }
  },
  '@nestjs/throttler'() {
    const storage = new ThrottlerStorageService()
    onTestFinished(() => storage.onApplicationShutdown())
    return async () => {
      // As its guard calls it if no block duration is set.
      const record = await storage.increment('ada', WINDOW_MS, LIMIT, WINDOW_MS, 'default')
      return { isAdmitted: !record.isBlocked, retryMs: 1000 * record.timeToBlockExpire }
    }
  },
  '@upstash/ratelimit'() {
    const limiter = upstash()
    return async (cost = 1) => {
      const { success, reset } = await limiter.limit('ada', { rate: cost })
      return { isAdmitted: success, retryMs: reset - Date.now() }
    }
  },
}

async function admitted(ask: Ask, requests: number): Promise<number> {
  let count = 0
  for (let n = 1; n <= requests; n++) if ((await ask()).isAdmitted) count++
  return count
}

describe.each(Object.keys(BY_DATE))('%s', (name) => {
  it('admits as many requests in the fullest minute as documented', async () => {
    setDate(START)
    const ask = await BY_DATE[name]!()
    const admissions = []
    for (const [ms, requests] of [
      [0, 1],
      [59_999, 20],
      [60_000, 20],
      [119_998, 20],
    ] as const) {
      vi.setSystemTime(START + ms)
      admissions.push({ atMs: ms, cost: await admitted(ask, requests) })
    }
    expect(triedOf(name)['the fullest minute']).toBe(`${fullestWindow(admissions, WINDOW_MS)}`)
  })

  it('returns the documented time to retry after a denial', async () => {
    setDate(START)
    const ask = await BY_DATE[name]!()
    expect(await admitted(ask, LIMIT)).toBe(LIMIT)
    vi.setSystemTime(START + 30_000)
    const { isAdmitted, retryMs } = await ask()
    expect(isAdmitted).toBe(false)
    vi.setSystemTime(START + 30_000 + retryMs)
    const isTrue = (await ask()).isAdmitted
    expect(triedOf(name)['told to wait']).toBe(`${retryMs / 1000} s, then ${isTrue ? 'admitted' : 'denied'}`)
  })
})

it.each([OURS, 'rate-limiter-flexible', '@upstash/ratelimit'])(
  '%s leaves as many of 2 units as documented after denying a cost of 5',
  async (name) => {
    setDate(START)
    const ask = await BY_DATE[name]!()
    expect(await admitted(ask, 8)).toBe(8)
    expect((await ask(5)).isAdmitted).toBe(false)
    expect(triedOf(name)['left of 2']).toBe(`${await admitted(ask, 5)}`)
  },
)

it('the other packages do not support costs', () => {
  for (const name of ['express-rate-limit', '@fastify/rate-limit', '@nestjs/throttler']) {
    expect(triedOf(name)['left of 2']).toBe('no costs')
  }
})

/** Opens a package that counts in Redis, by its name on the page. */
function onRedis(name: string, redis: Redis): PeerLimiter | Promise<PeerLimiter> {
  if (name === OURS) {
    const limiter = createLimiter({ limits, store: redisStore(redis), timeoutMs: 30_000 })
    return { decide: async (key) => (await limiter.consume(key)).allowed, close: () => limiter.close() }
  }
  if (name === '@upstash/ratelimit') {
    const limiter = upstash()
    return { decide: async (key) => (await limiter.limit(key)).success }
  }
  const peerName = name === 'express-rate-limit' ? 'rate-limit-redis' : name
  const peer = REDIS_PEERS.find((peer) => peer.name === peerName)!
  return peer.open(redis, { limit: LIMIT, windowMs: WINDOW_MS })
}

it.each([
  OURS,
  'rate-limiter-flexible',
  'express-rate-limit',
  '@fastify/rate-limit',
  '@upstash/ratelimit',
  'bottleneck',
])('%s calls Redis as often for 100 concurrent decisions as documented', async (name) => {
  const limiter = await onRedis(name, open.redis)
  const decide = () => Promise.all(Array.from({ length: 100 }, (_, user) => limiter.decide(`user:${user}`)))
  await decide()
  const calls: number[] = []
  for (let time = 1; time <= 3; time++) {
    await open.redis.config('RESETSTAT')
    expect(await decide()).not.toContain(false)
    calls.push(Number(/cmdstat_evalsha:calls=(\d+)/.exec(await open.redis.info('commandstats'))?.[1]))
  }
  // The minimum, because bottleneck also calls Redis on a timer.
  expect(triedOf(name)['calls of Redis']).toBe(`${Math.min(...calls)}`)
  await limiter.close?.()
})

it.each(['rate-limiter-flexible', 'express-rate-limit', '@fastify/rate-limit', 'bottleneck'])(
  '%s still waits for a hanging Redis after slidegate has timed out',
  async (name) => {
    expect(triedOf(name)['Redis stands still']).toBe('waits')
    const client = new Redis(open.server.url)
    const theirs = await onRedis(name, client)
    const ours = createLimiter({ limits, store: redisStore(client), logger: false })
    expect(await theirs.decide('ada')).toBe(true)
    await ours.consume('ada').catch(() => {}) // A first answer may come late on a busy machine.
    open.server.freeze()
    try {
      const waiting = theirs.decide('ada')
      await expect(ours.consume('ada')).rejects.toMatchObject({ name: 'StoreUnavailableError' })
      const late = new Promise((resolve) => setTimeout(resolve, 250, 'no answer'))
      expect(await Promise.race([waiting, late])).toBe('no answer')
      open.server.thaw()
      await waiting
    } finally {
      open.server.thaw()
      ours.close()
      await theirs.close?.()
      client.disconnect()
    }
  },
)

describe('the page', () => {
  it('names the locked versions', () => {
    const rows = tableUnder('Packages compared').filter(([, version]) => version !== '')
    const named = Object.fromEntries(rows.map(([name, version]) => [name, version]))
    const locked = Object.keys(named).map((name) => [name, lockedVersion(name)])
    expect(Object.keys(named).length).toBeGreaterThan(6)
    expect(named).toEqual(Object.fromEntries(locked))
  })

  it('links to existing files of the installed versions', () => {
    const links = Array.from(
      PAGE.matchAll(/https:\/\/app\.unpkg\.com\/((?:@[\w-]+\/)?[\w-]+)@([\d.]+)\/files\/(\S+)/g),
    )
    expect(links.length).toBeGreaterThan(10)
    for (const [link, name, version, file] of links) {
      expect(installedVersion(name!), link).toBe(version)
      expect(existsSync(join(folderOf(name!), file!)), link).toBe(true)
    }
  })

  it('defines exactly the reference links that it uses', () => {
    const used = new Set(Array.from(PAGE.matchAll(/\]\[([\w-]+)\]/g), ([, label]) => label))
    const given = new Set(Array.from(PAGE.matchAll(/^\[([\w-]+)\]: \S+$/gm), ([, label]) => label))
    expect(used).toEqual(given)
  })

  it('links a source in each cell about other packages', () => {
    const headings = ['How they count', 'Redis', 'Other features', 'Where they run', 'Gateways and services']
    for (const heading of headings) {
      const rows = tableUnder(heading)
      expect(rows.length, heading).toBeGreaterThan(1)
      for (const [name, ...cells] of rows) {
        for (const cell of cells) expect(cell, `${heading}: ${name}`).toMatch(/\]\[|\]\(/)
      }
    }
  })

  it('matches the table in the README', () => {
    const readme = readFileSync(join(ROOT, 'README.md'), 'utf8')
    const rows = readme.split('\n').filter((line) => line.startsWith('|'))
    const cellsOf = (begin: string) => cellsIn(rows.find((row) => row.startsWith(begin)) ?? '').slice(1)
    const names = [OURS, 'rate-limiter-flexible', 'express-rate-limit', '@upstash/ratelimit']
    const heads = cellsOf('| | slidegate ')
    for (const [column, name] of names.entries()) {
      expect(heads[column], name).toContain(name)
      if (name !== OURS) expect(heads[column]).toContain(` ${versionOf(name)}`)
      const tried = triedOf(name)
      expect(cellsOf('| [Most requests admitted in a minute')[column], name).toBe(tried['the fullest minute'])
      expect(cellsOf('| [Calls to Redis')[column]?.split(',')[0], name).toBe(tried['calls of Redis'])
      expect(cellsOf('| [If Redis hangs, by default')[column], name).toBe(tried['Redis stands still'])
    }
  })

  it('shows the figures that the bench measured', () => {
    const { scenarios } = JSON.parse(
      readFileSync(join(ROOT, 'docs/benchmarks/results.json'), 'utf8'),
    ) as Results
    const rows = tableUnder('Figures')
    expect(rows.length).toBeGreaterThan(5)
    for (const [scenario, name, measured] of rows) {
      const figures = scenarios.find(({ name }) => scenario!.startsWith(`[${name}]`))!.figures
      const figure = figures.find((figure) => figure.name === name)
      expect(figure && measuredText(figure), name).toBe(measured)
    }
  })
})

/** The cells of a package's row under "What was tested", by column. */
function triedOf(name: string): Readonly<Record<string, string | undefined>> {
  const heads = ['the fullest minute', 'told to wait', 'left of 2', 'calls of Redis', 'Redis stands still']
  const row = tableUnder('What was tested').find(([first]) => first === name)
  if (row === undefined) throw new Error(`The table under "What was tested" has no row for ${name}`)
  return Object.fromEntries(heads.map((head, column) => [head, row[column + 1]]))
}

function versionOf(name: string): string | undefined {
  return tableUnder('Packages compared').find(([first]) => first === name)?.[1]
}

/** The rows of the table under a heading. */
function tableUnder(heading: string): string[][] {
  const section = PAGE.split(/^## /m).find((section) => section.startsWith(`${heading}\n`))
  if (section === undefined) throw new Error(`docs/comparison.md has no heading ${heading}`)
  const rows = section.split('\n').filter((line) => line.startsWith('|'))
  return rows.slice(2).map(cellsIn)
}

function cellsIn(row: string): string[] {
  return row
    .split('|')
    .slice(1, -1)
    .map((cell) => cell.trim())
}
