import { LEFT, legend, light, limitLine, marks, TimeAxis, usage } from './panels.js'
import { fullest, play } from './play.js'
import { COLOURS, picture, text } from './svg.js'

/** Height of the limit in the plot of usage. */
const PLOT_HEIGHT = 110

/**
 * Draws requests, and the usage of the limit below.
 *
 * @param {object} scene
 * @param {string} scene.title
 * @param {import('slidegate').Limit} scene.limit
 * @param {readonly import('./play.js').Request[]} scene.requests
 * @param {number} scene.endMs
 * @param {string} scene.guarantee
 * @param {number} [scene.windowMs] length of the fullest window
 * @param {readonly number[]} [scene.boundaries] starts of windows
 * @param {Readonly<Record<number, string>>} [scene.notes] time -> text beside its marks
 * @param {string} [scene.used] legend text for usage
 * @param {string} [scene.limitIs]
 */
export async function drawTimeline(scene) {
  const {
    title,
    limit,
    requests,
    endMs,
    guarantee,
    windowMs,
    boundaries,
    notes = {},
    used = 'used',
    limitIs = 'limit',
  } = scene
  const { answers, levels } = await play(limit, requests, endMs)
  const axis = new TimeAxis(endMs)
  const swarm = marks(axis, answers)
  const top = 66
  const base = top + swarm.height + 4
  const plotBase = base + 20 + PLOT_HEIGHT
  const most = windowMs === undefined ? undefined : fullest(answers, windowMs)
  const foot = plotBase + (most ? 46 : 28)
  return picture(`${title}. ${guarantee}`, foot + 34, [
    text(LEFT, 24, title, { mono: true, size: 15, bold: true }),
    ...legend(
      {
        admitted: 'admitted',
        denied: 'denied',
        used,
        limit: limitIs,
        ...(boundaries && { boundary: 'start of a window' }),
        ...(most && { fullest: 'fullest 10 s' }),
      },
      48,
    ),
    ...(most ? [light(axis, most, top - 4, plotBase)] : []),
    ...axis.boundaries(boundaries ?? [], top - 4, plotBase),
    ...usage(axis, levels, limit.limit, plotBase, PLOT_HEIGHT),
    limitLine(axis, plotBase - PLOT_HEIGHT),
    ...axis.draw(plotBase, 2000),
    ...swarm.draw(base),
    ...Object.entries(notes).map(([atMs, words]) => text(axis.x(Number(atMs)) + 9, top + 12, words)),
    ...(most
      ? [
          text(
            (axis.x(most.fromMs) + axis.x(most.fromMs + most.windowMs)) / 2,
            plotBase + 36,
            `${most.count} admitted`,
            {
              anchor: 'middle',
              bold: true,
            },
          ),
        ]
      : []),
    text(LEFT, foot + 18, guarantee, { fill: COLOURS.text }),
  ])
}
