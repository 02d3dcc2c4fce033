// @ts-expect-error The package has no types.
import slotOf from 'cluster-key-slot'
import { createLimiter, slidingWindow } from 'slidegate'
import { redisStore } from 'slidegate/redis'
import { LEFT, TimeAxis } from './panels.js'
import { COLOURS, element, line, picture, text } from './svg.js'

const SLOTS = 16_384
const SERVERS = 3
const TOP = 60
const HEIGHT = 90

/**
 * Draws the slots of callers' keys on a Cluster.
 *
 * @param {object} scene
 * @param {string} scene.title
 * @param {readonly string[]} scene.callers
 * @param {readonly string[]} scene.notes
 */
export async function drawTags({ title, callers, notes }) {
  const keys = await keysOf(callers)
  /** @type {Map<number, number>} */
  const counts = new Map()
  for (const slot of keys.map(slotOf)) counts.set(slot, (counts.get(slot) ?? 0) + 1)
  const most = Math.max(...counts.values())
  const base = TOP + HEIGHT
  const axis = new TimeAxis(SLOTS)
  const x = (/** @type {number} */ slot) => axis.x(slot)
  const servers = Array.from({ length: SERVERS }, (_, i) => {
    const [from, to] = [x((SLOTS / SERVERS) * i), x((SLOTS / SERVERS) * (i + 1))]
    const held = [...counts.keys()].filter((slot) => x(slot) >= from && x(slot) < to).length
    return [
      element('rect', { x: from + 1, y: base, width: to - from - 2, height: 24, fill: COLOURS.rule }),
      text((from + to) / 2, base + 16, `server ${i + 1}: ${held} tags`, { anchor: 'middle', size: 12 }),
    ]
  })
  return picture(`${title}. ${notes.join(' ')}`, base + 60 + 18 * notes.length, [
    text(LEFT, 24, title, { size: 15, bold: true }),
    ...[...counts].map(([slot, count]) =>
      line(x(slot), base, x(slot), base - (count / most) * HEIGHT, COLOURS.used, { 'stroke-width': 4 }),
    ),
    text(LEFT - 8, TOP + 4, `${most}`, { anchor: 'end', size: 12 }),
    text(LEFT - 8, base + 4, '0', { anchor: 'end', size: 12, fill: COLOURS.faint }),
    ...servers.flat(),
    text(LEFT, base + 44, 'slot 0', { size: 12, fill: COLOURS.faint }),
    text(axis.right, base + 44, `${SLOTS - 1}`, { size: 12, fill: COLOURS.faint, anchor: 'end' }),
    ...notes.map((note, i) => text(LEFT, base + 64 + 18 * i, note, { size: 12 })),
  ])
}

/** Collects the keys of calls. The calls never get a response. */
async function keysOf(/** @type {readonly string[]} */ callers) {
  /** @type {string[]} */
  const keys = []
  const store = redisStore({
    command(words) {
      keys.push(...words.slice(3, 3 + Number(words[2])))
      return Promise.reject(new Error('No response'))
    },
  })
  const limits = [slidingWindow({ limit: 100, window: '1m' })]
  const limiter = createLimiter({ limits, store, logger: false, breaker: { minRequests: 2 ** 20 } })
  await Promise.allSettled(callers.map((caller) => limiter.consume(caller)))
  limiter.close()
  return keys
}
