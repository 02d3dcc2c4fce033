import { createLimiter } from 'slidegate'
import { redisStore } from 'slidegate/redis'
import { ManualClock } from 'slidegate/testing'
import { KEY, START_MS } from './play.js'

// Reads a log from its bytes in Redis. docs/state.md describes the format.

export const BACK = 39
export const FRONT = 99
export const RING = 147
export const RECORD = 12
export const PAGE = 4

/**
 * @typedef {{ atMs: number, cost?: number }} Request
 * @typedef {{ total: number, atMs: number, at: number }} Stored `at`: the offset of its bytes
 */

/**
 * Plays requests through a limit on Redis. Returns the decisions and the stored log.
 *
 * @param {import('ioredis').Redis} redis
 * @param {import('slidegate').Limit} limit
 * @param {readonly Request[]} requests in order of time
 */
export async function storedLog(redis, limit, requests) {
  const clock = new ManualClock(START_MS)
  const limiter = createLimiter({
    name: 'api',
    limits: [limit],
    store: redisStore(redis, { clock: clock.now }),
    timeoutMs: 30_000,
  })
  const decisions = []
  for (const { atMs, cost = 1 } of requests) {
    clock.set(START_MS + atMs)
    decisions.push(await limiter.consume(KEY, { cost }))
  }
  const [key = ''] = await redis.keys('*:w1')
  const log = readLog((await redis.getBuffer(key)) ?? Buffer.alloc(RING))
  const leftMs = START_MS + (requests.at(-1)?.atMs ?? 0)
  await redis.del(key)
  return { decisions, log, leftMs }
}

/** @param {Buffer} bytes */
function readLog(bytes) {
  const number = (/** @type {number} */ at, width = 6) => bytes.readUIntBE(at, width)
  const record = (/** @type {number} */ at) => ({ total: number(at), atMs: number(at + 6) - START_MS, at })
  const header = {
    format: number(0, 1),
    since: number(1) - START_MS,
    slots: number(7, 2),
    keep: number(9),
    base: number(15),
    newest: record(21),
    front: number(33, 1),
    back: number(34, 1),
    head: number(35, 2),
    pages: number(37, 2),
  }
  const { slots, head, pages, front, back } = header
  const from = (/** @type {number} */ at, /** @type {number} */ count) =>
    Array.from({ length: count }, (_, i) => record(at + i * RECORD))
  const ring = Array.from({ length: pages }, (_, page) =>
    from(RING + ((head + page) % slots) * PAGE * RECORD, PAGE),
  )
  const records = [
    ...from(FRONT + (PAGE - front) * RECORD, front),
    ...ring.flat(),
    ...from(BACK, back),
    header.newest,
  ]
  return { bytes, header, records }
}
