import { denied, LEFT, legend, limitLine, TimeAxis, usage } from './panels.js'
import { every, KEY, Levels, limiterOf, START_MS } from './play.js'
import { COLOURS, element, line, picture, text } from './svg.js'

/** The holders, with their arrival, and their release or last renewal. */
const COMERS = [
  { name: 'A', fromMs: 500, untilMs: 5000 },
  { name: 'B', fromMs: 1500, untilMs: 4400, dies: true },
  { name: 'C', fromMs: 2500, untilMs: 13_500 },
  { name: 'D', fromMs: 3500, untilMs: 3500 },
  { name: 'E', fromMs: 5500, untilMs: 15_000 },
  { name: 'F', fromMs: 7000, untilMs: 7000 },
  { name: 'G', fromMs: 10_000, untilMs: 16_500 },
]
/** B wakes up, and releases a slot that it no longer holds. */
const LATE = { name: 'B', atMs: 12_000 }

const TOP = 68
const LANE = 20
const PLOT_HEIGHT = 60

/**
 * @typedef {{ name: string, fromMs: number, untilMs: number, dies?: boolean }} Comer
 * @typedef {Comer & { permit?: import('slidegate').Permit, renewedMs: number[], freeMs: number }} Holder
 */

/**
 * Draws a lane per holder, and the number of held slots below.
 *
 * @param {object} scene
 * @param {string} scene.title
 * @param {import('slidegate').Limit} scene.limit
 * @param {number} scene.ttlMs
 * @param {number} scene.endMs
 * @param {string} scene.guarantee
 */
export async function drawHolders({ title, limit, ttlMs, endMs, guarantee }) {
  const { holders, levels, lateWasHeld } = await playHolders(limit, ttlMs, endMs)
  const axis = new TimeAxis(endMs)
  const laneOf = (/** @type {number} */ i) => TOP + i * LANE + LANE / 2
  const base = TOP + holders.length * LANE + 14 + PLOT_HEIGHT
  const late = holders.findIndex(({ name }) => name === LATE.name)
  const silent = holders.find(({ dies }) => dies)
  const drawn = holders.flatMap((holder, i) => drawLane(axis, holder, laneOf(i)))
  return picture(`${title}. ${guarantee}`, base + 62, [
    text(LEFT, 24, title, { mono: true, size: 15, bold: true }),
    ...legend({ denied: 'denied', used: 'held', limit: 'limit' }, 48, 320),
    element('rect', { x: LEFT, y: 40, width: 22, height: 9, fill: COLOURS.admitted }),
    text(LEFT + 28, 48, 'held', { size: 12 }),
    line(LEFT + 78, 37, LEFT + 78, 52, COLOURS.limit, { 'stroke-width': 1.5 }),
    text(LEFT + 84, 48, 'renewed', { size: 12 }),
    element('rect', {
      x: LEFT + 158,
      y: 40,
      width: 22,
      height: 9,
      fill: COLOURS.admitted,
      'fill-opacity': '0.3',
    }),
    text(LEFT + 186, 48, 'silent', { size: 12 }),
    ...drawn,
    text(axis.x(silent?.freeMs ?? 0) + 6, laneOf(late) + 4, `free after ${ttlMs / 1000} s`, { size: 12 }),
    text(axis.x(LATE.atMs), laneOf(late) + 4, `| wakes up, release() is ${lateWasHeld}`, { size: 12 }),
    ...usage(axis, levels, limit.limit, base, PLOT_HEIGHT),
    limitLine(axis, base - PLOT_HEIGHT),
    ...axis.draw(base, 2000),
    text(LEFT, base + 46, guarantee),
  ])
}

/**
 * @param {TimeAxis} axis
 * @param {Holder} holder
 */
function drawLane(axis, { name, permit, fromMs, untilMs, dies, renewedMs, freeMs }, /** @type {number} */ y) {
  const label = text(LEFT - 8, y + 4, name, { anchor: 'end', bold: true })
  if (!permit) {
    return [label, denied(axis.x(fromMs), y)]
  }
  const bar = (/** @type {number} */ from, /** @type {number} */ to, /** @type {string} */ opacity) =>
    element('rect', {
      ...{ x: axis.x(from), y: y - 5, width: axis.x(to) - axis.x(from), height: 10 },
      ...{ fill: COLOURS.admitted, 'fill-opacity': opacity },
    })
  return [
    label,
    bar(fromMs, untilMs, '1'),
    ...(dies ? [bar(untilMs, freeMs, '0.3')] : []),
    ...renewedMs.map((atMs) =>
      line(axis.x(atMs), y - 8, axis.x(atMs), y + 8, COLOURS.limit, { 'stroke-width': 1.5 }),
    ),
  ]
}

/**
 * @param {import('slidegate').Limit} limit
 */
async function playHolders(limit, /** @type {number} */ ttlMs, /** @type {number} */ endMs) {
  const { clock, limiter } = limiterOf(limit)
  const levels = new Levels(limiter)
  /** @type {Holder[]} */
  const holders = COMERS.map((comer) => ({ ...comer, renewedMs: [], freeMs: 0 }))
  let lateWasHeld = true
  for (const atMs of every(100, 0, endMs / 100 + 1)) {
    clock.set(START_MS + atMs)
    await levels.note(atMs)
    for (const holder of holders) await live(holder, limiter, ttlMs, atMs)
    if (atMs === LATE.atMs) {
      lateWasHeld = (await holders.find(({ name }) => name === LATE.name)?.permit?.release()) ?? true
    }
    await levels.note(atMs)
  }
  // The limiter renews by the real clock. Here, renewals are simulated every third of the ttl.
  limiter.close()
  return { holders, levels: levels.all, lateWasHeld }
}

/**
 * Runs a holder's actions at this time.
 *
 * @param {Holder} holder
 * @param {import('slidegate').Limiter} limiter
 */
async function live(holder, limiter, /** @type {number} */ ttlMs, /** @type {number} */ atMs) {
  const { fromMs, untilMs, dies, renewedMs } = holder
  if (atMs === fromMs) {
    const permit = await limiter.acquire(KEY)
    if (permit.allowed) holder.permit = permit
  }
  if (!holder.permit) return
  if (atMs === untilMs && !dies) await holder.permit.release()
  if (
    atMs > fromMs &&
    atMs < untilMs &&
    (atMs - fromMs) % (ttlMs / 3) === 0 &&
    (await holder.permit.extend())
  ) {
    renewedMs.push(atMs)
  }
  if (dies) holder.freeMs = (renewedMs.at(-1) ?? fromMs) + ttlMs
}
