import { withRedis } from './redis.js'
import { BACK, FRONT, PAGE, RECORD, RING, storedLog } from './stored-log.js'
import { COLOURS, element, line, picture, text } from './svg.js'

const LEFT = 64
const BYTE = 12
const ROW = 34
const GAP = 26

const FILL = { header: '#f6c945', back: '#13795b', front: '#3568b0', ring: '#8a8a8a' }

/**
 * Draws the bytes of a log in Redis.
 *
 * @param {object} scene
 * @param {string} scene.title
 * @param {import('slidegate').Limit} scene.limit
 * @param {readonly import('./stored-log.js').Request[]} scene.requests
 */
export async function drawStoredBytes({ title, limit, requests }) {
  const { log } = await withRedis((redis) => storedLog(redis, limit, requests))
  const { bytes, header, records } = log
  const live = new Map(records.map((record) => [record.at, record]))
  /** @type {string[]} */
  const drawn = []
  let y = 48

  /** Draws a range of bytes as a box with a name and value. */
  const box = (
    /** @type {number} */ x,
    /** @type {number} */ width,
    /** @type {string} */ name,
    /** @type {string} */ value,
    /** @type {string} */ fill,
  ) => {
    drawn.push(
      element('rect', {
        ...{ x, y, width, height: ROW, stroke: COLOURS.faint },
        ...(fill === '' ? { fill: '#ffffff' } : { fill, 'fill-opacity': '0.25' }),
      }),
    )
    if (width > 2 * BYTE) {
      drawn.push(text(x + width / 2, y + 14, name, { anchor: 'middle', size: 11 }))
      drawn.push(text(x + width / 2, y + 28, value, { anchor: 'middle', size: 11, fill: COLOURS.faint }))
    } else {
      drawn.push(text(x + width / 2, y + 21, value, { anchor: 'middle', size: 11, fill: COLOURS.faint }))
    }
  }
  const offset = (/** @type {number} */ at) =>
    drawn.push(text(LEFT - 8, y + 21, `${at}`, { anchor: 'end', size: 11, fill: COLOURS.faint }))
  const seconds = (/** @type {number} */ ms) => `${ms / 1000} s`

  const { newest } = header
  const fields = /** @type {const} */ ([
    ['format', 1, header.format],
    ['since', 6, seconds(header.since)],
    ['slots', 2, header.slots],
    ['keep', 6, seconds(header.keep)],
    ['base', 6, header.base],
    ['newest record', 12, `total ${newest.total}, ${seconds(newest.atMs)}`],
    ['front', 1, header.front],
    ['back', 1, header.back],
    ['head', 2, header.head],
    ['pages', 2, header.pages],
  ])
  drawn.push(text(LEFT, y - 6, 'header, 39 bytes', { size: 12, bold: true }))
  offset(0)
  let x = LEFT
  fields.forEach(([name, width, value], i) => {
    box(x, width * BYTE, name, `${value}`, FILL.header)
    if (width <= 2) {
      // Too narrow for its name, so the name goes below.
      const below = y + ROW + 12 + (i % 2) * 12
      drawn.push(line(x + (width * BYTE) / 2, y + ROW, x + (width * BYTE) / 2, below - 9, COLOURS.faint))
      drawn.push(text(x + (width * BYTE) / 2, below, name, { anchor: 'middle', size: 11 }))
    }
    x += width * BYTE
  })
  y += ROW + GAP + 24

  /** Draws a page of four records. */
  const page = (/** @type {number} */ at, /** @type {string} */ fill) => {
    offset(at)
    for (let i = 0; i < PAGE; i++) {
      const record = live.get(at + i * RECORD)
      const [name, value] = record ? [`total ${record.total}`, seconds(record.atMs)] : ['', 'unused']
      box(LEFT + i * RECORD * BYTE, RECORD * BYTE, name, value, record ? fill : '')
    }
  }
  const parts = /** @type {const} */ ([
    ['back: the records just before the newest', [BACK], FILL.back],
    ['front: the oldest records, which expire next', [FRONT], FILL.front],
    [
      `ring: ${header.slots} pages of four; the oldest of the ${header.pages} in use is page ${header.head}`,
      Array.from({ length: header.slots }, (_, i) => RING + i * PAGE * RECORD),
      FILL.ring,
    ],
  ])
  for (const [name, offsets, fill] of parts) {
    drawn.push(text(LEFT, y - 6, name, { size: 12, bold: true }))
    for (const at of offsets) {
      page(at, fill)
      y += ROW + 2
    }
    y += GAP
  }
  return picture(`${title}. ${records.length} records in ${bytes.length} bytes.`, y + 6, [
    text(LEFT, 24, `${title}: ${records.length} records, ${bytes.length} bytes`, { size: 15, bold: true }),
    ...drawn,
    text(LEFT, y - 6, 'Each record has 12 bytes: the running total, and the time (here since the start).', {
      size: 12,
      fill: COLOURS.faint,
    }),
  ])
}
