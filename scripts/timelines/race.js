import { createLimiter, slidingWindow } from 'slidegate'
import { redisStore } from 'slidegate/redis'
import { ManualClock } from 'slidegate/testing'
import { START_MS } from './play.js'
import { withRedis } from './redis.js'
import { COLOURS, element, line, picture, text } from './svg.js'

const LIMIT = 10
const WINDOW_MS = 10_000
const TOP = 62
const STEP = 30
/** Columns of a panel, from its left edge. */
const FIRST = 66
const REDIS = 188
const SECOND = 310

/** @typedef {{ caller: 0 | 1, sent: string, reply: string, result?: 'admitted' | 'denied' }} Call */

/**
 * Draws the commands of two callers that compete for the last place.
 *
 * All replies are real ones.
 *
 * @param {object} scene
 * @param {string} scene.title
 * @param {readonly string[]} scene.notes
 */
export async function drawRace({ title, notes }) {
  const panels = await withRedis(async (redis) => ({
    'sorted set, one command at a time': await sortedSet(redis),
    'slidegate, one script': await oneScript(redis),
  }))
  const rows = Math.max(...Object.values(panels).map((calls) => calls.length))
  const bottom = TOP + 34 + rows * STEP
  return picture(`${title}. ${notes.join(' ')}`, bottom + 24 + 18 * notes.length, [
    text(24, 24, title, { size: 15, bold: true }),
    ...Object.entries(panels).flatMap(([name, calls], i) => panel(24 + i * 390, name, calls, bottom)),
    ...notes.map((note, i) => text(24, bottom + 26 + 18 * i, note, { size: 12 })),
  ])
}

/**
 * Both callers count before either adds.
 *
 * @param {import('ioredis').Redis} redis
 * @returns {Promise<Call[]>}
 */
async function sortedSet(redis) {
  const key = 'requests'
  for (let i = 1; i < LIMIT; i++) await redis.zadd(key, START_MS, `${i}`)
  /** @type {Call[]} */
  const calls = []
  const callers = /** @type {const} */ ([0, 1])
  for (const caller of callers) calls.push({ caller, sent: 'ZCARD', reply: `${await redis.zcard(key)}` })
  for (const caller of callers) {
    if (Number(calls[caller]?.reply) >= LIMIT) throw new Error('this caller would be denied')
    const reply = `${await redis.zadd(key, START_MS, `${LIMIT + caller}`)}`
    calls.push({ caller, sent: 'ZADD', reply, result: 'admitted' })
  }
  return calls
}

/**
 * @param {import('ioredis').Redis} redis
 * @returns {Promise<Call[]>}
 */
async function oneScript(redis) {
  const limiter = createLimiter({
    limits: [slidingWindow({ limit: LIMIT, window: WINDOW_MS })],
    store: redisStore(redis, { clock: new ManualClock(START_MS).now }),
    timeoutMs: 30_000,
  })
  await limiter.consume('user:42', { cost: LIMIT - 1 })
  /** @type {Call[]} */
  const calls = []
  for (const caller of /** @type {const} */ ([0, 1])) {
    const { allowed, remaining, retryAfterMs } = await limiter.consume('user:42')
    const reply = allowed ? `${remaining} left` : `wait ${retryAfterMs / 1000} s`
    calls.push({ caller, sent: 'EVALSHA', reply, result: allowed ? 'admitted' : 'denied' })
  }
  limiter.close()
  return calls
}

/**
 * @param {number} left
 * @param {string} name
 * @param {readonly Call[]} calls
 * @param {number} bottom
 */
function panel(left, name, calls, bottom) {
  const columns = Object.entries({ 'caller A': FIRST, Redis: REDIS, 'caller B': SECOND })
  return [
    text(left, TOP - 10, name, { mono: true, bold: true }),
    ...columns.flatMap(([label, at]) => [
      text(left + at, TOP + 12, label, { anchor: 'middle', size: 12, fill: COLOURS.faint }),
      line(left + at, TOP + 20, left + at, bottom, COLOURS.rule),
    ]),
    ...calls.flatMap(({ caller, sent, reply, result }, i) => {
      const y = TOP + 44 + i * STEP
      const side = caller === 0 ? -1 : 1
      const from = left + (caller === 0 ? FIRST : SECOND)
      const to = left + REDIS + side * 4
      const middle = (from + to) / 2
      const colour = result === undefined ? COLOURS.faint : COLOURS[result]
      return [
        line(from, y, to, y, COLOURS.faint),
        element('path', {
          d: `M${to + side * 7} ${y - 4}L${to} ${y}L${to + side * 7} ${y + 4}`,
          fill: 'none',
          stroke: COLOURS.faint,
        }),
        text(middle, y - 5, sent, { anchor: 'middle', size: 11, mono: true }),
        text(middle, y + 13, reply, { anchor: 'middle', size: 11, fill: COLOURS.faint }),
        ...(result === undefined
          ? []
          : [
              text(from + side * 6, y + 4, result, {
                anchor: caller === 0 ? 'end' : 'start',
                size: 11,
                bold: true,
                fill: colour,
              }),
            ]),
      ]
    }),
  ]
}
