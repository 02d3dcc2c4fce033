// @ts-check
// Measures bytes allocated and calls to Redis per decision, with the built package. Needs the flags of allocated.js
// and the URL of an empty Redis.
import { Redis } from 'ioredis'
import { createLimiter, memoryStore, slidingWindow } from 'slidegate'
import { redisStore } from 'slidegate/redis'
import { bytesEach } from '../support/allocated.js'

const IN_MEMORY = 100_000
const LONE = 4000
const IN_FLIGHT = 1024
const TOGETHER = 32 * IN_FLIGHT

const redis = new Redis(process.argv[2] ?? '')
const one = ['user:0']
const many = Array.from({ length: 10_000 }, (_, i) => `user:${i}`)

/** @type {Record<string, { bytes: number, calls?: number }>} */
const figures = {}
/** Results that callers hold for a moment. @type {unknown[]} */
const held = []

/** @param {import('slidegate').Store} store */
function limiterOn(store, limit = 1_000_000_000) {
  const limits = [slidingWindow({ limit, window: '1h', precision: '10s' })]
  return createLimiter({ limits, store, timeoutMs: 60_000 })
}

/** @param {string} name @param {readonly string[]} keys @param {number} [limit] */
async function inMemory(name, keys, limit) {
  const limiter = limiterOn(memoryStore({ clock: () => 1_700_000_000_000 }), limit)
  const bytes = await bytesEach(IN_MEMORY, () => {
    for (let i = 0; i < IN_MEMORY; i++) held[i & 63] = limiter.consumeSync(keys[i % keys.length] ?? '')
  })
  figures[`memory, ${name}`] = { bytes }
}

/** @param {string} name @param {readonly string[]} keys @param {number} [limit] */
async function inRedis(name, keys, limit) {
  for (const [load, times, inFlight] of /** @type {const} */ ([
    ['lone', LONE, 1],
    ['1,024 in flight', TOGETHER, IN_FLIGHT],
  ])) {
    await redis.flushall()
    const store = redisStore(redis)
    const limiter = limiterOn(store, limit)
    const before = await scriptCalls()
    let asked = 0
    const bytes = await bytesEach(times, async () => {
      for (let i = 0; i < times; i += inFlight) await together(limiter, keys, i, inFlight)
      asked += times
    })
    figures[`Redis, ${name}, ${load}`] = { bytes, calls: ((await scriptCalls()) - before) / asked }
    limiter.close()
    await store.close()
  }
}

/** @param {import('slidegate').Limiter} limiter @param {readonly string[]} keys @param {number} from @param {number} count */
function together(limiter, keys, from, count) {
  return new Promise((resolve, reject) => {
    let left = count
    /** @param {unknown} decision */
    const decided = (decision) => {
      held[left & 63] = decision
      if (--left === 0) resolve(undefined)
    }
    for (let i = 0; i < count; i++) {
      limiter.consume(keys[(from + i) % keys.length] ?? '').then(decided, reject)
    }
  })
}

async function scriptCalls() {
  const [, calls = '0'] = /^cmdstat_evalsha:calls=(\d+)/m.exec(await redis.info('commandstats')) ?? []
  return Number(calls)
}

await inMemory('one key, admitted', one)
await inMemory('one key, denied', one, 1)
await inMemory('10,000 keys, admitted', many)
await inRedis('one key, admitted', one)
await inRedis('one key, denied', one, 1)
await inRedis('10,000 keys, admitted', many)
redis.disconnect()
process.stdout.write(JSON.stringify(figures))
