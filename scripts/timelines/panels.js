import { COLOURS, element, line, round, text } from './svg.js'

/**
 * @typedef {import('./play.js').Answer} Answer
 * @typedef {import('./play.js').Level} Level
 */

/** Default left end of a time axis. */
export const LEFT = 56
const RIGHT = 780

/** Default size of a mark. */
const MARK = 8

/** Maps times to horizontal positions. */
export class TimeAxis {
  left
  right
  endMs

  constructor(/** @type {number} */ endMs, left = LEFT, right = RIGHT) {
    this.endMs = endMs
    this.left = left
    this.right = right
  }

  x(/** @type {number} */ atMs) {
    return this.left + (Math.min(atMs, this.endMs) / this.endMs) * (this.right - this.left)
  }

  /** Draws the axis with a number at each step. */
  draw(/** @type {number} */ y, /** @type {number} */ stepMs, /** @type {'s' | 'ms'} */ unit = 's') {
    const drawn = [line(this.left, y, this.right, y, COLOURS.faint)]
    for (let atMs = 0; atMs <= this.endMs; atMs += stepMs) {
      const x = this.x(atMs)
      drawn.push(line(x, y, x, y + 4, COLOURS.faint))
      const number = unit === 's' ? atMs / 1000 : atMs
      drawn.push(text(x, y + 18, `${number} ${unit}`, { anchor: 'middle', size: 12, fill: COLOURS.faint }))
    }
    return drawn
  }

  /** Draws dotted lines at the starts of windows. */
  boundaries(
    /** @type {readonly number[]} */ times,
    /** @type {number} */ top,
    /** @type {number} */ bottom,
  ) {
    return times.map((atMs) =>
      line(this.x(atMs), top, this.x(atMs), bottom, COLOURS.boundary, { 'stroke-dasharray': '2 3' }),
    )
  }
}

/** Draws an admitted request. */
export function admitted(/** @type {number} */ x, /** @type {number} */ y, room = MARK) {
  return element('circle', { cx: x, cy: y, r: 0.44 * room, fill: COLOURS.admitted })
}

/** Draws a denied request. */
export function denied(/** @type {number} */ x, /** @type {number} */ y, room = MARK) {
  const arm = 0.375 * room
  const [a, b, c, d] = [x - arm, y - arm, x + arm, y + arm].map(round)
  return element('path', {
    d: `M${a} ${b}L${c} ${d}M${a} ${d}L${c} ${b}`,
    stroke: COLOURS.denied,
    'stroke-width': room / 4,
  })
}

/**
 * Places requests as marks above a base line. Marks that would overlap are stacked.
 *
 * @param {TimeAxis} axis
 * @param {readonly Answer[]} answers
 * @returns {{ height: number, draw(base: number): string[] }}
 */
export function marks(axis, answers, room = MARK) {
  /** @type {number[]} right end of each level, from the base line up */
  const taken = []
  const placed = answers.map((answer) => {
    const x = axis.x(answer.atMs)
    const free = taken.findIndex((end) => end <= x - room + 0.01)
    const level = free === -1 ? taken.length : free
    taken[level] = x
    return { ...answer, x, level }
  })
  const isLabelled = answers.some(({ label }) => label !== undefined)
  return {
    height: room * taken.length + (isLabelled ? 16 : 0),
    draw: (base) =>
      placed.flatMap(({ x, level, allowed, label }) => {
        const y = base - room * (level + 0.5)
        const mark = allowed ? admitted(x, y, room) : denied(x, y, room)
        const fill = allowed ? COLOURS.admitted : COLOURS.denied
        return label === undefined
          ? [mark]
          : [mark, text(x, y - 8, label, { anchor: 'middle', bold: true, fill })]
      }),
  }
}

/**
 * Draws usage above a base line.
 *
 * @param {TimeAxis} axis
 * @param {readonly Level[]} levels
 * @param {number} most value at full height
 * @param {number} base
 * @param {number} height
 */
export function usage(axis, levels, most, base, height) {
  const y = (/** @type {number} */ used) => round(base - (used / most) * height)
  const shown = levels.filter(({ atMs }) => atMs < axis.endMs)
  const steps = shown.map(({ atMs, used }) => `H${round(axis.x(atMs))}V${y(used)}`).join('')
  const path = `M${axis.left} ${base}${steps}H${axis.right}`
  const label = { anchor: /** @type {const} */ ('end'), size: 12 }
  return [
    element('path', { d: `${path}V${base}Z`, fill: COLOURS.used, 'fill-opacity': '0.15' }),
    element('path', { d: path, fill: 'none', stroke: COLOURS.used, 'stroke-width': 1.5 }),
    text(axis.left - 8, y(most) + 4, `${most}`, label),
    text(axis.left - 8, base + 4, '0', { ...label, fill: COLOURS.faint }),
  ]
}

/** Draws the limit as a line. */
export function limitLine(/** @type {TimeAxis} */ { left, right }, /** @type {number} */ y) {
  return line(left, y, right, y, COLOURS.limit, { 'stroke-dasharray': '7 4', 'stroke-width': 1.5 })
}

/**
 * Highlights a stretch of time.
 *
 * @param {TimeAxis} axis
 * @param {{ fromMs: number, windowMs: number }} stretch
 */
export function light(axis, { fromMs, windowMs }, /** @type {number} */ top, /** @type {number} */ bottom) {
  const x = axis.x(fromMs)
  const width = axis.x(fromMs + windowMs) - x
  return element('rect', {
    x,
    y: top,
    width,
    height: bottom - top,
    fill: COLOURS.fullest,
    'fill-opacity': '0.28',
  })
}

/** @typedef {'admitted' | 'denied' | 'used' | 'limit' | 'boundary' | 'fullest'} LegendItem */

/**
 * Draws a legend in one row.
 *
 * @param {Partial<Record<LegendItem, string>>} items sign -> text
 */
export function legend(items, /** @type {number} */ y, /** @type {number} */ x = LEFT) {
  const signs = {
    admitted: (/** @type {number} */ at) => [admitted(at + 6, y - 4)],
    denied: (/** @type {number} */ at) => [denied(at + 6, y - 4)],
    used: (/** @type {number} */ at) => [
      element('rect', {
        x: at - 4,
        y: y - 9,
        width: 16,
        height: 9,
        fill: COLOURS.used,
        'fill-opacity': '0.15',
      }),
      line(at - 4, y - 9, at + 12, y - 9, COLOURS.used, { 'stroke-width': 1.5 }),
    ],
    limit: (/** @type {number} */ at) => [
      line(at - 6, y - 4, at + 12, y - 4, COLOURS.limit, { 'stroke-dasharray': '7 4', 'stroke-width': 1.5 }),
    ],
    boundary: (/** @type {number} */ at) => [
      line(at + 6, y - 11, at + 6, y + 2, COLOURS.boundary, { 'stroke-dasharray': '2 3' }),
    ],
    fullest: (/** @type {number} */ at) => [
      element('rect', {
        x: at - 4,
        y: y - 10,
        width: 16,
        height: 12,
        fill: COLOURS.fullest,
        'fill-opacity': '0.28',
      }),
    ],
  }
  let at = x
  return Object.entries(items).flatMap(([name, words]) => {
    const sign = signs[/** @type {LegendItem} */ (name)](at)
    const drawn = [...sign, text(at + 18, y, words, { size: 12 })]
    // A letter is at most 7.1 wide on average.
    at += 18 + 7.1 * words.length + 18
    return drawn
  })
}
