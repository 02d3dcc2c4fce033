import { LEFT, TimeAxis } from './panels.js'
import { withRedis } from './redis.js'
import { storedLog } from './stored-log.js'
import { COLOURS, element, line, picture, round, text } from './svg.js'

const TOP = 50
const HEIGHT = 230

/**
 * Draws the records of a log as a staircase, with the units of a window.
 *
 * @param {object} scene
 * @param {string} scene.title
 * @param {import('slidegate').Limit} scene.limit
 * @param {readonly import('./stored-log.js').Request[]} scene.requests the last one is denied
 * @param {number} scene.endMs
 */
export async function drawRunningTotals({ title, limit, requests, endMs }) {
  const { decisions, log } = await withRedis((redis) => storedLog(redis, limit, requests))
  const { records, header } = log
  const lastRequest = requests.at(-1)
  const denial = decisions.at(-1)
  if (lastRequest === undefined || denial === undefined || denial.allowed)
    throw new Error('The last request must be denied')
  const { atMs: nowMs, cost = 1 } = lastRequest
  const { windowMs } = limit
  const axis = new TimeAxis(endMs, 90)
  const most = header.newest.total + cost
  const base = TOP + HEIGHT
  const y = (/** @type {number} */ total) => base - (total / most) * (HEIGHT - 10)

  const before = records.filter(({ atMs }) => atMs <= nowMs - windowMs).at(-1)?.total ?? header.base
  const { total } = header.newest
  // The record with this unit must leave the window first.
  const unit = total + cost - limit.limit
  const gate = records.find((record) => record.total >= unit) ?? header.newest
  const opensMs = gate.atMs + windowMs
  if (opensMs - nowMs !== denial.retryAfterMs) throw new Error('The computed time differs from retryAfterMs')

  const steps = records.map(({ atMs, total }) => `H${round(axis.x(atMs))}V${round(y(total))}`).join('')
  const [now, from] = [axis.x(nowMs), axis.x(nowMs - windowMs)]
  const faint = { fill: COLOURS.faint, size: 12 }
  return picture(title, base + 92, [
    text(LEFT, 24, title, { size: 15, bold: true }),
    element('rect', {
      ...{ x: from, y: TOP - 8, width: now - from, height: base - TOP + 8 },
      ...{ fill: COLOURS.fullest, 'fill-opacity': '0.28' },
    }),
    text((from + now) / 2, TOP + 6, `window: the last ${windowMs / 1000} s`, {
      anchor: 'middle',
      size: 12,
    }),
    ...[before, total].flatMap((level) => [
      line(axis.left, y(level), now, y(level), COLOURS.used, { 'stroke-dasharray': '2 3' }),
      text(axis.left - 8, y(level) + 4, `${level}`, { anchor: 'end', size: 12 }),
    ]),
    element('path', {
      ...{ d: `M${axis.left} ${round(y(header.base))}${steps}H${round(now)}`, fill: 'none' },
      ...{ stroke: COLOURS.used, 'stroke-width': 2 },
    }),
    ...records.map(({ atMs, total }) =>
      element('circle', { cx: axis.x(atMs), cy: y(total), r: 4, fill: COLOURS.used }),
    ),
    line(now, TOP - 8, now, base, COLOURS.limit, { 'stroke-width': 1.5 }),
    text(now + 6, y(total) + 14, `used: ${total} - ${before} = ${total - before}`, { size: 12, bold: true }),
    line(axis.left, y(unit), axis.x(opensMs), y(unit), COLOURS.denied, { 'stroke-dasharray': '7 4' }),
    line(axis.x(opensMs), y(unit), axis.x(opensMs), base, COLOURS.denied, { 'stroke-dasharray': '7 4' }),
    text(axis.left - 8, y(unit) + 4, `${unit}`, { anchor: 'end', size: 12, fill: COLOURS.denied }),
    element('circle', {
      cx: axis.x(gate.atMs),
      cy: y(gate.total),
      r: 7,
      fill: 'none',
      stroke: COLOURS.denied,
    }),
    text(axis.x(opensMs) + 6, base - 8, `cost ${cost} fits`, { size: 12, fill: COLOURS.denied }),
    ...axis.draw(base, 2000),
    text(
      LEFT,
      base + 44,
      `Each dot is a record in Redis: its time, and the running total of units. Limit ${limit.limit}.`,
      faint,
    ),
    text(
      LEFT,
      base + 62,
      `Cost ${cost} needs unit ${unit} = ${total} + ${cost} - ${limit.limit} to leave. Its record was charged at ${gate.atMs / 1000} s,`,
      faint,
    ),
    text(
      LEFT,
      base + 80,
      `so the decision at ${nowMs / 1000} s is: denied, retryAfterMs ${denial.retryAfterMs}. That takes one subtraction and two searches, but no sum.`,
      faint,
    ),
  ])
}
