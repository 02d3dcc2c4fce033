import { createLimiter } from 'slidegate'
import { redisStore } from 'slidegate/redis'
import { LEFT, TimeAxis } from './panels.js'
import { START_MS } from './play.js'
import { withRedis } from './redis.js'
import { COLOURS, element, line, picture, text } from './svg.js'

const TOP = 74
const ROW = 22
const MARK = 6

/** @typedef {{ sentMs: number, backMs: number, ops: number, requests: number, lane: number }} Call */

/**
 * Draws requests and the calls that carry them.
 *
 * Uses the real batcher and a real Redis, with a client that delays each response.
 *
 * @param {object} scene
 * @param {string} scene.title
 * @param {import('slidegate').Limit} scene.limit
 * @param {readonly { atMs: number, key: string }[]} scene.requests in order of time, in whole milliseconds
 * @param {number} scene.tripMs duration of a call
 * @param {number} scene.endMs
 * @param {readonly string[]} scene.notes
 */
export async function drawBatches({ title, limit, requests, tripMs, endMs, notes }) {
  const calls = await withRedis((redis) => callsOf(redis, limit, requests, tripMs, endMs))
  const axis = new TimeAxis(endMs, 100)
  /** @type {Map<number, number>} time -> requests so far */
  const piles = new Map()
  const highest = Math.max(
    ...requests.map(({ atMs }) => requests.filter((each) => each.atMs === atMs).length),
  )
  const base = TOP + highest * MARK
  const came = requests.map(({ atMs, key }) => {
    const level = piles.get(atMs) ?? 0
    piles.set(atMs, level + 1)
    return element('circle', {
      ...{ cx: axis.x(atMs), cy: base - MARK * (level + 0.5), r: 2.6 },
      fill: key === 'hot' ? COLOURS.denied : COLOURS.admitted,
    })
  })
  const lanes = Math.max(...calls.map(({ lane }) => lane)) + 1
  const first = base + 18
  const boxes = calls.flatMap(({ sentMs, backMs, ops, requests, lane }) => {
    const [x, y] = [axis.x(sentMs), first + lane * (ROW + 6)]
    const width = axis.x(backMs) - x
    return [
      element('rect', {
        ...{ x: x + 1, y, width: width - 2, height: ROW },
        ...{ fill: COLOURS.used, 'fill-opacity': '0.2', stroke: COLOURS.used },
      }),
      text(x + width / 2, y + 15, requests === ops ? `${ops}` : `${requests} in ${ops}`, {
        anchor: 'middle',
        size: 12,
        bold: true,
      }),
    ]
  })
  const foot = first + lanes * (ROW + 6) + 6
  const label = { anchor: /** @type {const} */ ('end'), size: 12, fill: COLOURS.faint }
  return picture(`${title}. ${notes.join(' ')}`, foot + 34 + 18 * notes.length, [
    text(LEFT, 24, title, { size: 15, bold: true }),
    element('circle', { cx: LEFT + 4, cy: 44, r: 3.5, fill: COLOURS.admitted }),
    text(LEFT + 14, 48, 'a request for its own key', { size: 12 }),
    element('circle', { cx: LEFT + 234, cy: 44, r: 3.5, fill: COLOURS.denied }),
    text(LEFT + 244, 48, 'a request for the hot key', { size: 12 }),
    text(92, base - 2, 'requests', label),
    text(92, first + 15, 'calls', label),
    line(axis.left, base, axis.right, base, COLOURS.rule),
    ...came,
    ...boxes,
    ...axis.draw(foot, 10, 'ms'),
    ...notes.map((note, i) => text(LEFT, foot + 42 + 18 * i, note, { size: 12 })),
  ])
}

/**
 * @param {import('ioredis').Redis} redis
 * @param {import('slidegate').Limit} limit
 * @param {readonly { atMs: number, key: string }[]} requests
 * @returns {Promise<readonly Call[]>}
 */
async function callsOf(redis, limit, requests, /** @type {number} */ tripMs, /** @type {number} */ endMs) {
  /** @type {Call[]} */
  const calls = []
  /** @type {{ dueMs: number, lane: number, answer: () => void }[]} */
  let inFlight = []
  let nowMs = -1
  const store = redisStore(
    {
      async command(words) {
        const [name = '', ...rest] = words
        if (nowMs < 0) return redis.call(name, ...rest)
        const lane = [0, 1, 2, 3].find((each) => inFlight.every((other) => other.lane !== each)) ?? 0
        const backMs = nowMs + tripMs
        const { sum } = store.stats().requestsPerCall
        calls.push({ sentMs: nowMs, backMs, ops: Number(rest[1]), requests: sum - travelled, lane })
        travelled = sum
        const reply = redis.call(name, ...rest)
        await new Promise((resolve) => {
          inFlight.push({ dueMs: backMs, lane, answer: () => resolve(undefined) })
        })
        return reply
      },
    },
    { clock: () => START_MS },
  )
  const limiter = createLimiter({ limits: [limit], store, timeoutMs: 30_000 })
  // Loads the script.
  await limiter.consume('first')
  let travelled = store.stats().requestsPerCall.sum
  const decisions = []
  for (nowMs = 0; nowMs < endMs || inFlight.length > 0; nowMs++) {
    const due = inFlight.filter(({ dueMs }) => dueMs <= nowMs)
    inFlight = inFlight.filter(({ dueMs }) => dueMs > nowMs)
    for (const { answer } of due) answer()
    for (const { key } of requests.filter(({ atMs }) => atMs === nowMs)) decisions.push(limiter.consume(key))
    await settled(redis)
  }
  await Promise.all(decisions)
  limiter.close()
  return calls
}

/** Waits until this process and Redis are idle. */
async function settled(/** @type {import('ioredis').Redis} */ redis) {
  for (let i = 0; i < 3; i++) {
    await redis.ping()
    await new Promise(setImmediate)
  }
}
