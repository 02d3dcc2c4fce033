import { createLimiter, memoryStore, withLeases } from 'slidegate'
import { ManualClock } from 'slidegate/testing'
import { LEFT, light, marks, TimeAxis } from './panels.js'
import { fullest, KEY, START_MS } from './play.js'
import { COLOURS, element, line, picture, text } from './svg.js'

const TOP = 58

/**
 * Draws charges and the requests that spend them, with and without leases.
 *
 * @param {object} scene
 * @param {string} scene.title
 * @param {import('slidegate').Limit} scene.limit
 * @param {number} scene.leaseMs
 * @param {readonly number[]} scene.leasing times of requests with leases
 * @param {readonly number[]} scene.beside times of requests without leases
 * @param {number} scene.endMs
 * @param {readonly string[]} scene.notes
 */
export async function drawLeases({ title, limit, leaseMs, leasing, beside, endMs, notes }) {
  const clock = new ManualClock(START_MS)
  const store = memoryStore({ clock: clock.now })
  const leased = withLeases(store, { leaseMs, clock: clock.now })
  const processes = [leased, store].map((each) =>
    createLimiter({ limits: [limit], store: each, timeoutMs: 30_000 }),
  )
  /** @type {{ atMs: number, chargedMs: number, allowed: boolean, process: number }[]} */
  const requests = []
  const times = [
    ...leasing.map((atMs) => ({ atMs, process: 0 })),
    ...beside.map((atMs) => ({ atMs, process: 1 })),
  ]
  for (const { atMs, process } of times.sort((a, b) => a.atMs - b.atMs)) {
    clock.set(START_MS + atMs)
    const decision = await processes[process]?.consume(KEY)
    if (decision === undefined) continue
    requests.push({ atMs, chargedMs: decision.atMs - START_MS, allowed: decision.allowed, process })
  }

  const axis = new TimeAxis(endMs, 130)
  const spent = fullest(requests, limit.windowMs)
  const charges = marks(
    axis,
    requests.filter(({ allowed }) => allowed).map(({ chargedMs }) => ({ atMs: chargedMs, allowed: true })),
    6,
  )
  const ours = marks(
    axis,
    requests.filter(({ process }) => process === 0),
    6,
  )
  const theirs = marks(
    axis,
    requests.filter(({ process }) => process === 1),
    6,
  )
  const chargeBase = TOP + charges.height
  const ourBase = chargeBase + 60 + ours.height
  const theirBase = ourBase + 14 + theirs.height
  const label = { anchor: /** @type {const} */ ('end'), size: 12, fill: COLOURS.faint }
  return picture(`${title}. ${notes.join(' ')}`, theirBase + 70 + 18 * notes.length, [
    text(LEFT - 40, 24, title, { mono: true, size: 14, bold: true }),
    light(axis, spent, chargeBase + 50, theirBase),
    text(120, chargeBase - 2, 'charged', label),
    text(120, ourBase - 2, 'with leases: spent', label),
    text(120, theirBase - 2, 'without: spent', label),
    ...requests
      .filter(({ allowed, process }) => allowed && process === 0)
      .map(({ atMs, chargedMs }) =>
        line(axis.x(chargedMs), chargeBase + 2, axis.x(atMs), ourBase - ours.height - 4, COLOURS.boundary, {
          'stroke-opacity': '0.5',
        }),
      ),
    ...charges.draw(chargeBase),
    ...ours.draw(ourBase),
    ...theirs.draw(theirBase),
    element('path', { d: `M${axis.left} ${theirBase}H${axis.right}`, stroke: COLOURS.rule }),
    ...axis.draw(theirBase + 4, 1000),
    text(
      (axis.x(spent.fromMs) + axis.x(spent.fromMs + limit.windowMs)) / 2,
      theirBase + 40,
      `${spent.count} spent in the fullest ${limit.windowMs / 1000} s`,
      { anchor: 'middle', bold: true },
    ),
    ...notes.map((note, i) => text(LEFT - 40, theirBase + 64 + 18 * i, note, { size: 12 })),
  ])
}
