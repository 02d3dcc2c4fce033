import { legend, light, marks, TimeAxis } from './panels.js'
import { fullest, play } from './play.js'
import { COLOURS, line, picture, text } from './svg.js'

const LEFT = 24
const TOP = 62

/**
 * @typedef {import('slidegate').Limit} Limit
 * @typedef {ReturnType<typeof fullest>} Fullest
 */

/**
 * Draws a row of marks per choice of limits, for the same requests.
 *
 * @param {object} scene
 * @param {string} scene.title
 * @param {Readonly<Record<string, Limit | readonly Limit[]>>} scene.limits row title -> limit
 * @param {readonly import('./play.js').Request[]} scene.requests
 * @param {Readonly<Record<string, readonly import('./play.js').Request[]>>} [scene.requestsOf] other requests for some rows
 * @param {number} [scene.windowMs] length of the fullest window
 * @param {number} scene.endMs
 * @param {number} [scene.stepMs] step of the axis
 * @param {readonly number[]} [scene.boundaries] boundaries of windows
 * @param {(answers: readonly import('./play.js').Answer[], most: Fullest) => string} [scene.says] text beside a row
 */
export async function drawComparison(scene) {
  const {
    title,
    limits,
    requests,
    requestsOf = {},
    windowMs = 0,
    endMs,
    stepMs = 2000,
    boundaries = [],
    says = saysFullest,
  } = scene
  const axis = new TimeAxis(endMs, LEFT, 640)
  /** @type {string[]} */
  const rows = []
  let y = TOP
  for (const [name, choice] of Object.entries(limits)) {
    const { answers } = await play(choice, requestsOf[name] ?? requests, endMs)
    const swarm = marks(axis, answers)
    const most = fullest(answers, windowMs)
    const base = y + 26 + swarm.height
    const isOver = [choice].flat().some(({ limit, windowMs: of }) => of === windowMs && most.count > limit)
    rows.push(
      ...(windowMs > 0 ? [light(axis, most, y + 24, base)] : []),
      text(LEFT, y + 16, name, { mono: true, bold: true }),
      text(656, base - 4, says(answers, most), { bold: isOver }),
      line(axis.left, base, axis.right, base, COLOURS.rule),
      ...swarm.draw(base),
    )
    y = base + 10
  }
  const seconds = `${windowMs / 1000} s`
  return picture(title, y + 32, [
    text(LEFT, 24, title, { size: 15, bold: true }),
    ...legend(
      {
        ...{ admitted: 'admitted', denied: 'denied' },
        ...(boundaries.length > 0 && { boundary: `every ${seconds}` }),
        ...(windowMs > 0 && { fullest: `fullest ${seconds}` }),
      },
      48,
      LEFT,
    ),
    ...axis.boundaries(boundaries, TOP, y),
    ...rows,
    ...axis.draw(y, stepMs),
  ])
}

/** @type {NonNullable<Parameters<typeof drawComparison>[0]['says']>} */
function saysFullest(_, { count }) {
  return `fullest: ${count}`
}

/** Returns the longest `retryAfterMs`, for `says`. */
export function saysWait(/** @type {readonly import('./play.js').Answer[]} */ answers) {
  const longestMs = Math.max(...answers.map(({ retryAfterMs = 0 }) => retryAfterMs))
  return `waits up to ${Math.ceil(longestMs / 1000)} s`
}
