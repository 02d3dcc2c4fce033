import { createLimiter, memoryStore } from 'slidegate'
import { ManualClock } from 'slidegate/testing'
import { LEFT, TimeAxis } from './panels.js'
import { START_MS } from './play.js'
import { COLOURS, element, line, picture, round, text } from './svg.js'

const HOUR_MS = 3_600_000
const MINUTE_MS = 60_000
/** A full hour in UTC, at which calendar hours and fixed windows start. */
const FROM_MS = Math.ceil(START_MS / HOUR_MS) * HOUR_MS
const TOP = 58
const HEIGHT = 46

/** @typedef {{ limit: import('slidegate').Limit, jitterMs?: number }} Row */

/**
 * Draws the requests per minute of callers that obey `retryAfterMs`.
 *
 * @param {object} scene
 * @param {string} scene.title
 * @param {Readonly<Record<string, Row>>} scene.rows name -> limit, and the jitter of its retries
 * @param {number} scene.callers
 * @param {number} scene.gapMs mean time between a caller's requests
 * @param {number} scene.hours
 * @param {readonly string[]} scene.notes
 */
export async function drawStampede({ title, rows, callers, gapMs, hours, notes }) {
  const played = Object.entries(rows).map(
    ([name, row]) => /** @type {const} */ ([name, perMinute(row, callers, gapMs, hours)]),
  )
  const most = Math.max(...played.flatMap(([, counts]) => counts))
  const axis = new TimeAxis(hours * 60, LEFT, 640)
  const width = (axis.right - axis.left) / (hours * 60)
  /** @type {string[]} */
  const drawn = []
  let y = TOP
  for (const [name, counts] of played) {
    const base = y + 18 + HEIGHT
    const bars = counts.map((count, minute) => {
      const height = round((count / most) * HEIGHT)
      return `M${round(axis.x(minute))} ${base}v${-height}h${round(width)}v${height}z`
    })
    drawn.push(
      text(LEFT, y + 12, name, { mono: true, bold: true }),
      text(656, base - 4, `up to ${Math.max(...counts)} per minute`),
      line(axis.left, base, axis.right, base, COLOURS.rule),
      element('path', { d: bars.join(''), fill: COLOURS.used }),
    )
    y = base + 10
  }
  const marks = Array.from({ length: hours + 1 }, (_, hour) => {
    const x = axis.x(hour * 60)
    return [
      line(x, y, x, y + 4, COLOURS.faint),
      text(x, y + 18, `${hour} h`, { anchor: 'middle', size: 12, fill: COLOURS.faint }),
    ]
  })
  return picture(`${title}. ${notes.join(' ')}`, y + 36 + 18 * notes.length, [
    text(LEFT, 24, title, { size: 15, bold: true }),
    text(LEFT, 44, 'requests per minute, including retries', { size: 12, fill: COLOURS.faint }),
    ...drawn,
    line(axis.left, y, axis.right, y, COLOURS.faint),
    ...marks.flat(),
    ...notes.map((note, i) => text(LEFT, y + 40 + 18 * i, note, { size: 12 })),
  ])
}

/**
 * @param {Row} row
 * @param {number} callers
 * @param {number} gapMs
 * @param {number} hours
 */
function perMinute({ limit, jitterMs = 0 }, callers, gapMs, hours) {
  const clock = new ManualClock(FROM_MS)
  const limiter = createLimiter({ limits: [limit], store: memoryStore({ clock: clock.now }) })
  const random = numbers()
  const gap = () => Math.ceil(-Math.log(1 - random()) * gapMs)
  const counts = new Array(hours * 60).fill(0)
  /** The time of each caller's next request. */
  const next = Array.from({ length: callers }, gap)
  for (;;) {
    const atMs = Math.min(...next)
    if (atMs >= hours * HOUR_MS) return counts
    const caller = next.indexOf(atMs)
    clock.set(FROM_MS + atMs)
    counts[Math.floor(atMs / MINUTE_MS)]++
    const { allowed, retryAfterMs } = limiter.consumeSync(`user:${caller}`)
    next[caller] = atMs + (allowed ? gap() : retryAfterMs + Math.round(random() * jitterMs))
  }
}

/** Returns a generator of numbers from 0 to below 1. They are the same in each run. */
function numbers() {
  let seed = 1
  return () => {
    seed = (seed * 48_271) % 2_147_483_647
    return seed / 2_147_483_647
  }
}
