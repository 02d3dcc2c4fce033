import { admitted, LEFT, TimeAxis } from './panels.js'
import { KEY, limiterOf, START_MS } from './play.js'
import { COLOURS, element, line, picture, text } from './svg.js'

const TOP = 66
const ROW = 84

/**
 * Draws when requests arrive at a bucket, and when they are admitted.
 *
 * @param {object} scene
 * @param {string} scene.title
 * @param {readonly import('slidegate').Limit[]} scene.limits
 * @param {readonly number[]} scene.arrivals
 * @param {number} scene.endMs
 * @param {string} scene.guarantee
 */
export async function drawShaping({ title, limits, arrivals, endMs, guarantee }) {
  const axis = new TimeAxis(endMs, 150)
  /** @type {string[]} */
  const rows = []
  let y = TOP
  for (const limit of limits) {
    const departures = await departuresOf(limit, arrivals)
    rows.push(
      text(LEFT, y - 2 + ROW / 2 - 12, `capacity ${limit.limit}`, { bold: true }),
      text(140, y + 4, 'arrive', { anchor: 'end', size: 12, fill: COLOURS.faint }),
      text(140, y + ROW - 32, 'start', { anchor: 'end', size: 12, fill: COLOURS.faint }),
      ...arrivals.flatMap((atMs, i) => {
        const [from, to] = [axis.x(atMs), axis.x(departures[i] ?? atMs)]
        return [
          line(from, y, to, y + ROW - 36, COLOURS.boundary),
          element('circle', { cx: from, cy: y, r: 3.5, fill: '#ffffff', stroke: COLOURS.limit }),
          admitted(to, y + ROW - 36),
        ]
      }),
    )
    y += ROW
  }
  return picture(`${title}. ${guarantee}`, y + 48, [
    text(LEFT, 24, title, { mono: true, size: 15, bold: true }),
    ...rows,
    ...axis.draw(y - 10, 2000),
    text(LEFT, y + 36, guarantee),
  ])
}

/**
 * Tries requests in order, each again after its `retryAfterMs`.
 *
 * @param {import('slidegate').Limit} limit
 * @param {readonly number[]} arrivals
 */
async function departuresOf(limit, arrivals) {
  const { clock, limiter } = limiterOf(limit)
  const departures = []
  let nowMs = 0
  for (const arrivedMs of arrivals) {
    nowMs = Math.max(nowMs, arrivedMs)
    clock.set(START_MS + nowMs)
    for (;;) {
      const { allowed, retryAfterMs } = await limiter.consume(KEY)
      if (allowed) break
      nowMs += retryAfterMs
      clock.advance(retryAfterMs)
    }
    departures.push(nowMs)
  }
  return departures
}
