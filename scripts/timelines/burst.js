import { legend, light, marks, TimeAxis } from './panels.js'
import { every, fullest, play } from './play.js'
import { COLOURS, element, line, picture, text } from './svg.js'

const LEFT = 24
const TOP = 70
const MARK = 5.8

/**
 * Draws a row of marks per limit, with a bracket around its fullest minute.
 *
 * @param {object} scene
 * @param {string} scene.title
 * @param {Readonly<Record<string, import('slidegate').Limit>>} scene.limits row title -> limit
 * @param {readonly import('./play.js').Request[]} scene.requests
 * @param {number} scene.startMs time of the clock at the left
 * @param {number} scene.endMs
 * @param {readonly number[]} scene.boundaries starts of aligned windows
 * @param {readonly string[]} scene.notes lines below the rows
 */
export async function drawBurst({ title, limits, requests, startMs, endMs, boundaries, notes }) {
  const axis = new TimeAxis(endMs, 36, 764)
  /** @type {string[]} */
  const lights = []
  /** @type {string[]} */
  const rows = []
  let y = TOP
  for (const [name, limit] of Object.entries(limits)) {
    const { answers } = await play(limit, requests, endMs, { startMs, lookMs: 1000 })
    const swarm = marks(axis, answers, MARK)
    const most = fullest(answers, limit.windowMs)
    const base = y + 26 + swarm.height
    const words = `${most.count} of ${limit.limit} = ${(100 * most.count) / limit.limit}%`
    const fill = most.count > limit.limit ? COLOURS.denied : COLOURS.admitted
    const [from, to] = [axis.x(most.fromMs), axis.x(most.fromMs + limit.windowMs)]
    lights.push(light(axis, most, y + 22, base))
    rows.push(
      text(LEFT, y + 14, name, { size: 15, bold: true }),
      line(axis.left, base, axis.right, base, COLOURS.rule),
      ...swarm.draw(base),
      text(axis.x(answers.at(-1)?.atMs ?? 0) + 14, base - swarm.height / 2 + 4, summaryOf(answers)),
      element('path', {
        ...{ d: `M${from} ${base + 4}V${base + 11}H${to}V${base + 4}`, fill: 'none' },
        ...{ stroke: fill, 'stroke-width': 2 },
      }),
      text((from + to) / 2, base + 32, words, { anchor: 'middle', size: 18, bold: true, fill }),
    )
    y = base + 44
  }
  const clock = (/** @type {number} */ atMs) => new Date(startMs + atMs).toISOString().slice(11, 19)
  return picture(`${title}. ${notes.join(' ')}`, y + 40 + 20 * notes.length, [
    text(LEFT, 26, title, { size: 16, bold: true }),
    ...legend(
      {
        ...{ admitted: 'admitted', denied: 'denied' },
        ...{ boundary: 'start of a fixed window', fullest: 'the fullest minute' },
      },
      52,
      LEFT,
    ),
    ...lights,
    ...axis.boundaries(boundaries, TOP + 4, y),
    ...rows,
    line(axis.left, y, axis.right, y, COLOURS.faint),
    ...every(15_000, 0, endMs / 15_000 + 1).flatMap((atMs) => [
      line(axis.x(atMs), y, axis.x(atMs), y + 4, COLOURS.faint),
      text(axis.x(atMs), y + 18, clock(atMs), {
        ...{ anchor: /** @type {const} */ ('middle'), size: 12, fill: COLOURS.faint },
      }),
    ]),
    ...notes.map((note, i) => text(LEFT, y + 46 + 20 * i, note)),
  ])
}

/**
 * Returns how many requests were admitted and denied, in words.
 *
 * @param {readonly import('./play.js').Answer[]} answers
 */
function summaryOf(answers) {
  const admitted = answers.filter(({ allowed }) => allowed).length
  const denied = answers.length - admitted
  return denied === 0 ? `${admitted} admitted` : `${admitted} admitted, ${denied} denied`
}
