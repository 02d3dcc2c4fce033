import { memoryStore, slidingCount } from 'slidegate'
import { ManualClock } from 'slidegate/testing'
import { LEFT, marks, TimeAxis, usage } from './panels.js'
import { every, KEY, START_MS } from './play.js'
import { picture, text } from './svg.js'

const TOP = 44
const PLOT_HEIGHT = 90

/**
 * Draws additions, and the count below them.
 *
 * @param {object} scene
 * @param {string} scene.title
 * @param {import('slidegate').Duration} scene.period
 * @param {readonly { atMs: number, n: number }[]} scene.additions in order of time
 * @param {number} scene.endMs
 * @param {string} scene.guarantee
 */
export async function drawCount({ title, period, additions, endMs, guarantee }) {
  const clock = new ManualClock()
  const count = slidingCount({ period, store: memoryStore({ clock: clock.now }) })
  /** @type {import('./play.js').Level[]} */
  const levels = []
  for (const atMs of every(100, 0, endMs / 100)) {
    clock.set(START_MS + atMs)
    for (const { n } of additions.filter((addition) => addition.atMs === atMs)) await count.add(KEY, n)
    levels.push({ atMs, used: await count.get(KEY) })
  }
  const changes = levels.filter(({ used }, i) => used !== levels[i - 1]?.used)

  const axis = new TimeAxis(endMs)
  const swarm = marks(
    axis,
    additions.map(({ atMs, n }) => ({ atMs, allowed: true, label: `+${n}` })),
  )
  const base = TOP + swarm.height + 4
  const plotBase = base + 20 + PLOT_HEIGHT
  const most = Math.max(...levels.map(({ used }) => used))
  return picture(`${title}. ${guarantee}`, plotBase + 62, [
    text(LEFT, 24, title, { mono: true, size: 15, bold: true }),
    ...usage(axis, changes, most, plotBase, PLOT_HEIGHT),
    ...axis.draw(plotBase, 2000),
    ...swarm.draw(base),
    text(LEFT, plotBase + 46, guarantee),
  ])
}
