import { legend, light, marks, TimeAxis } from './panels.js'
import { fullest, play } from './play.js'
import { COLOURS, line, picture, text } from './svg.js'

const LEFT = 24
const TOP = 62

/**
 * One row of marks per limit, for the same requests.
 *
 * @param {object} scene
 * @param {string} scene.title
 * @param {Readonly<Record<string, import('slidegate').Limit>>} scene.limits by what is written over their rows
 * @param {readonly import('./play.js').Request[]} scene.requests
 * @param {number} scene.windowMs
 * @param {number} scene.endMs
 */
export async function drawComparison({ title, limits, requests, windowMs, endMs }) {
  const axis = new TimeAxis(endMs, LEFT, 640)
  /** @type {string[]} */
  const rows = []
  let y = TOP
  for (const [name, limit] of Object.entries(limits)) {
    const { answers } = await play(limit, requests, endMs)
    const swarm = marks(axis, answers)
    const most = fullest(answers, windowMs)
    const base = y + 26 + swarm.height
    rows.push(
      light(axis, most, y + 24, base),
      text(LEFT, y + 16, name, { mono: true, bold: true }),
      text(656, base - 4, `${most.count} in the fullest`, { bold: most.count > limit.limit }),
      line(axis.left, base, axis.right, base, COLOURS.rule),
      ...swarm.draw(base),
    )
    y = base + 10
  }
  return picture(title, y + 32, [
    text(LEFT, 24, title, { size: 15, bold: true }),
    ...legend(
      { admitted: 'admitted', denied: 'denied', edge: 'each 10 s', fullest: 'fullest 10 s' },
      48,
      LEFT,
    ),
    ...axis.edges([10_000, 20_000], TOP, y),
    ...rows,
    ...axis.draw(y, 2000),
  ])
}
