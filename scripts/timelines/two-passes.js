import { LEFT, legend, limitLine, marks, TimeAxis, usage } from './panels.js'
import { every, KEY, limiterOf, START_MS } from './play.js'
import { picture, text } from './svg.js'

const TOP = 66
const HEIGHT = 70

/**
 * Draws requests for several limits, and the usage of each below.
 *
 * @param {object} scene
 * @param {string} scene.title
 * @param {readonly import('slidegate').Limit[]} scene.limits
 * @param {readonly number[]} scene.requests
 * @param {number} scene.endMs
 * @param {string} scene.guarantee
 */
export async function drawTwoPasses({ title, limits, requests, endMs, guarantee }) {
  const { clock, limiter } = limiterOf(limits)
  const answers = []
  /** @type {import('./play.js').Level[][]} */
  const levels = limits.map(() => [{ atMs: 0, used: 0 }])
  for (const atMs of every(10, 0, endMs / 10)) {
    clock.set(START_MS + atMs)
    for (const _ of requests.filter((each) => each === atMs)) {
      answers.push({ atMs, allowed: (await limiter.consume(KEY)).allowed })
    }
    const peeked = (await limiter.peek(KEY)).limits
    peeked.forEach(({ limit, remaining }, i) => {
      levels[i]?.push({ atMs, used: limit - remaining })
    })
  }

  const axis = new TimeAxis(endMs)
  const swarm = marks(axis, answers)
  const base = TOP + swarm.height + 4
  /** @type {string[]} */
  const plots = []
  let y = base + 18
  limits.forEach((limit, i) => {
    const changes = (levels[i] ?? []).filter(({ used }, at, all) => used !== all[at - 1]?.used)
    plots.push(
      text(LEFT, y + 6, limit.name, { mono: true, size: 12, bold: true }),
      ...usage(axis, changes, limit.limit, y + 16 + HEIGHT, HEIGHT),
      limitLine(axis, y + 16),
    )
    y += HEIGHT + 36
  })
  const foot = y - 16
  return picture(`${title}. ${guarantee}`, foot + 56, [
    text(LEFT, 24, title, { mono: true, size: 15, bold: true }),
    ...legend({ admitted: 'admitted', denied: 'denied', used: 'used', limit: 'limit' }, 48),
    ...swarm.draw(base),
    ...plots,
    ...axis.draw(foot, 2000),
    text(LEFT, foot + 44, guarantee),
  ])
}
