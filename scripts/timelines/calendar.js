import { LEFT, legend, limitLine, marks, TimeAxis, usage } from './panels.js'
import { every, play } from './play.js'
import { COLOURS, line, picture, text } from './svg.js'

const HOUR_MS = 3_600_000
const TOP = 88
const PLOT_HEIGHT = 90

/**
 * Draws days around a clock change, with a request every two hours.
 *
 * @param {object} scene
 * @param {string} scene.title
 * @param {import('slidegate').Limit} scene.limit
 * @param {string} scene.timeZone
 * @param {string} scene.from midnight of the first day
 * @param {number} scene.days
 * @param {string} scene.guarantee
 */
export async function drawCalendar({ title, limit, timeZone, from, days, guarantee }) {
  const startMs = Date.parse(from)
  const local = new Intl.DateTimeFormat('en-GB', {
    ...{ timeZone, weekday: 'short', day: 'numeric', month: 'long', hour: 'numeric', hourCycle: 'h23' },
  })
  /** @param {number} atMs @param {Intl.DateTimeFormatPartTypes} part */
  const partOf = (atMs, part) =>
    local.formatToParts(startMs + atMs).find(({ type }) => type === part)?.value ?? ''

  const hours = every(HOUR_MS, 0, 25 * days)
  const midnights = hours.filter((atMs) => Number(partOf(atMs, 'hour')) === 0).slice(0, days + 1)
  const endMs = midnights[days] ?? 0
  const requests = every(2 * HOUR_MS, HOUR_MS, endMs / HOUR_MS / 2).map((atMs) => ({ atMs }))
  const { answers, levels } = await play(limit, requests, endMs, { startMs, lookMs: HOUR_MS / 4 })

  const axis = new TimeAxis(endMs)
  const swarm = marks(axis, answers)
  const base = TOP + swarm.height + 4
  const plotBase = base + 20 + PLOT_HEIGHT
  const ticks = hours.filter((atMs) => atMs <= endMs && Number(partOf(atMs, 'hour')) % 6 === 0)
  return picture(`${title}. ${guarantee}`, plotBase + 62, [
    text(LEFT, 24, title, { mono: true, size: 15, bold: true }),
    ...legend(
      { admitted: 'admitted', denied: 'denied', used: 'used', limit: 'limit', boundary: 'start of a window' },
      48,
    ),
    ...midnights.slice(0, days).map((atMs, day) => {
      const nextMs = midnights[day + 1] ?? endMs
      const date = `${partOf(atMs, 'weekday')} ${partOf(atMs, 'day')} ${partOf(atMs, 'month')}`
      const words = `${date}: ${(nextMs - atMs) / HOUR_MS} hours`
      return text(axis.x((atMs + nextMs) / 2), TOP - 14, words, { anchor: 'middle' })
    }),
    ...axis.boundaries(midnights, TOP - 10, plotBase),
    ...usage(axis, levels, limit.limit, plotBase, PLOT_HEIGHT),
    limitLine(axis, plotBase - PLOT_HEIGHT),
    line(axis.left, plotBase, axis.right, plotBase, COLOURS.faint),
    ...ticks.flatMap((atMs) => [
      line(axis.x(atMs), plotBase, axis.x(atMs), plotBase + 4, COLOURS.faint),
      text(axis.x(atMs), plotBase + 18, `${partOf(atMs, 'hour')}:00`, {
        ...{ anchor: 'middle', size: 12, fill: COLOURS.faint },
      }),
    ]),
    ...swarm.draw(base),
    text(LEFT, plotBase + 46, guarantee),
  ])
}
