import { LEFT, legend, limitLine, marks, TimeAxis, usage } from './panels.js'
import { KEY, limiterOf, START_MS } from './play.js'
import { picture, text } from './svg.js'

const PLOT_HEIGHT = 50

/**
 * Draws jobs for several limits: which are admitted, and how many run concurrently.
 *
 * @param {object} scene
 * @param {string} scene.title
 * @param {Readonly<Record<string, import('slidegate').Limit>>} scene.limits row title -> limit
 * @param {readonly { atMs: number, lastsMs: number }[]} scene.jobs in order of time
 * @param {number} scene.most value at full height
 * @param {number} scene.endMs
 */
export async function drawJobs({ title, limits, jobs, most, endMs }) {
  const axis = new TimeAxis(endMs, LEFT, 640)
  /** @type {string[]} */
  const rows = []
  let y = 62
  for (const [name, limit] of Object.entries(limits)) {
    const { answers, levels } = await run(limit, jobs)
    const swarm = marks(axis, answers)
    const base = y + 24 + swarm.height
    const plotBase = base + 8 + PLOT_HEIGHT
    const fullest = Math.max(...levels.map(({ used }) => used))
    rows.push(
      text(LEFT, y + 14, name, { mono: true, bold: true }),
      ...swarm.draw(base),
      ...usage(axis, levels, most, plotBase, PLOT_HEIGHT),
      limitLine(axis, plotBase - (limit.limit / most) * PLOT_HEIGHT),
      text(656, plotBase - 4, `up to ${fullest} concurrent`, { bold: fullest > limit.limit }),
    )
    y = plotBase + 16
  }
  return picture(title, y + 28, [
    text(LEFT, 24, title, { size: 15, bold: true }),
    ...legend({ admitted: 'admitted', denied: 'denied', used: 'running', limit: 'limit' }, 48),
    ...rows,
    ...axis.draw(y - 6, 2000),
  ])
}

/**
 * @param {import('slidegate').Limit} limit
 * @param {readonly { atMs: number, lastsMs: number }[]} jobs
 */
async function run(limit, jobs) {
  const { clock, limiter } = limiterOf(limit)
  const isHeld = limit.kind.entries?.are === 'holder'
  /** @type {{ atMs: number, allowed: boolean }[]} */
  const answers = []
  /** @type {import('./play.js').Level[]} */
  const levels = [{ atMs: 0, used: 0 }]
  /** @type {{ untilMs: number, requestId: string }[]} */
  let running = []
  const instants = new Set(jobs.flatMap(({ atMs, lastsMs }) => [atMs, atMs + lastsMs]))
  for (const atMs of Array.from(instants).sort((a, b) => a - b)) {
    clock.set(START_MS + atMs)
    const isOver = (/** @type {{ untilMs: number }} */ { untilMs }) => untilMs <= atMs
    for (const { requestId } of running.filter(isOver)) {
      if (isHeld) await limiter.release(KEY, requestId)
    }
    running = running.filter((job) => !isOver(job))
    for (const { lastsMs } of jobs.filter((job) => job.atMs === atMs)) {
      const requestId = `job-${answers.length}`
      const { allowed } = await limiter.consume(KEY, isHeld ? { requestId } : {})
      answers.push({ atMs, allowed })
      if (allowed) running.push({ untilMs: atMs + lastsMs, requestId })
    }
    levels.push({ atMs, used: running.length })
  }
  return { answers, levels }
}
