// @ts-check
import { LEFT, legend, limitLine, TimeAxis } from '../../scripts/timelines/panels.js'
import { COLOURS, element, line, picture, round, text } from '../../scripts/timelines/svg.js'

const TOP = 70
const HEIGHT = 88
const END_MS = 1800

/**
 * Draws a dot per request that reached the database.
 *
 * It shows when the request was sent, and how long it took.
 *
 * @param {readonly { name: string, answers: readonly import('./main.js').Answer[] }[]} panels
 * @param {{ startsMs: number, limit: number, timeoutMs: number }} scene
 */
export function drawAnswers(panels, { startsMs, limit, timeoutMs }) {
  const axis = new TimeAxis(END_MS - startsMs)
  const mostMs = Math.max(...panels.flatMap(({ answers }) => answers.map(({ tookMs }) => tookMs)))
  /** @type {string[]} */
  const drawn = []
  let base = TOP
  for (const { name, answers } of panels) {
    base += 24 + HEIGHT
    const y = (/** @type {number} */ tookMs) => round(base - (tookMs / mostMs) * HEIGHT)
    const failed = answers.filter(({ status }) => status !== 200)
    const path = (
      /** @type {typeof answers} */ shown,
      /** @type {string} */ mark,
      /** @type {string} */ stroke,
      /** @type {number} */ width,
    ) =>
      element('path', {
        d: shown.map(({ atMs, tookMs }) => `M${round(axis.x(atMs - startsMs))} ${y(tookMs)}${mark}`).join(''),
        ...{ stroke, 'stroke-width': width, 'stroke-linecap': 'round', fill: 'none' },
      })
    const words = `${name}: ${answers.length - failed.length} answered, ${failed.length} failed`
    drawn.push(
      text(axis.left, base - HEIGHT - 8, words, { bold: true }),
      limitLine(axis, y(timeoutMs)),
      line(axis.left, base, axis.right, base, COLOURS.faint),
      text(axis.left - 8, y(timeoutMs) + 4, `${timeoutMs} ms`, { anchor: 'end', size: 12 }),
      text(axis.left - 8, base + 4, '0', { anchor: 'end', size: 12, fill: COLOURS.faint }),
      path(
        answers.filter(({ status }) => status === 200),
        'h0',
        COLOURS.admitted,
        4.5,
      ),
      path(failed, 'm-2 -2l4 4m0 -4l-4 4', COLOURS.denied, 1.2),
    )
  }
  const title = `500 requests around the boundary of a window, with a limit of ${limit} in two seconds`
  return picture(`${title}, and how long each request that reached the database took.`, base + 60, [
    text(LEFT, 24, title, { size: 15, bold: true }),
    ...legend(
      {
        ...{ admitted: 'answered', denied: 'failed', limit: 'timeout for a connection' },
        boundary: 'start of a fixed window',
      },
      48,
    ),
    ...axis.boundaries([-startsMs], TOP, base),
    ...drawn,
    ...axis.draw(base, 500),
    text(
      LEFT,
      base + 46,
      'The response time of each request that reached the database, by the time it was sent.',
      {
        size: 12,
      },
    ),
  ])
}
