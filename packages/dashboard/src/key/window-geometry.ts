// The geometry of the window picture: positions in pixels at the time of a response.
// Moving parts are drawn once for each response, and then moved together.

import type { Charge, ExplainedLimit } from '../api-types.ts'

export interface Frame {
  readonly width: number
  /** Pixels per millisecond. */
  readonly scale: number
  /** The position of the current time. */
  readonly now: number
  /** The position of the window's start. Undefined if this kind of limit doesn't store the time of each charge. */
  readonly edge: number | undefined
}

export interface Band {
  readonly top: number
  readonly height: number
}

export interface Mark extends Charge {
  readonly x: number
  readonly y: number
  readonly width: number
  readonly height: number
}

/** The usage at a point in time. */
export interface Level {
  readonly atMs: number
  readonly used: number
}

const LEAST_MARK = 2
const LEAST_HEIGHT = 4

/** Kinds of limits that free units gradually instead of a whole charge at a time. */
const GRADUAL = ['tokenBucket', 'slidingCounter']

export function isGradual({ declared }: ExplainedLimit): boolean {
  return declared !== undefined && GRADUAL.includes(declared.kind)
}

/** How long a charge counts, in milliseconds. It counts until its step of `precisionMs` has left the window. */
export function countsMs({ windowMs, precisionMs }: ExplainedLimit): number {
  return windowMs + Math.max(0, precisionMs - 1)
}

/** Computes the frame, which includes some time before the window and after the current time. */
export function frameOf(limit: ExplainedLimit, width: number): Frame {
  const hasTimes = limit.charges !== undefined
  const spanMs = countsMs(limit)
  const past = hasTimes ? 1.05 : 0.6
  const future = hasTimes ? 0.38 : 1
  const scale = width / ((past + future) * spanMs)
  const now = past * spanMs * scale
  return { width, scale, now, edge: hasTimes ? now - spanMs * scale : undefined }
}

/** Turns charges into bars. A bar is as wide as a step of `precisionMs` and as high as its units. */
export function marksOf(
  { charges = [], precisionMs }: ExplainedLimit,
  atMs: number,
  frame: Frame,
  band: Band,
): readonly Mark[] {
  const most = Math.max(1, ...charges.map(({ units }) => units))
  return charges.map((charge) => {
    const height = Math.max(LEAST_HEIGHT, (band.height * charge.units) / most)
    return {
      ...charge,
      x: frame.now + (charge.atMs - atMs) * frame.scale,
      y: band.top + band.height - height,
      width: Math.max(LEAST_MARK, precisionMs * frame.scale),
      height,
    }
  })
}

/** The future usage if nothing more is charged. Lists each time at which usage falls, and the usage from then on. */
export function fallOf(limit: ExplainedLimit, atMs: number): readonly Level[] {
  const { charges, olderUnits, used, frees } = limit
  if (charges === undefined || olderUnits !== 0) {
    return frees.map(({ afterMs, units }) => ({ atMs: atMs + afterMs, used: used - units }))
  }
  let left = used
  return charges.map((charge) => {
    left -= charge.units
    return { atMs: charge.atMs + countsMs(limit), used: left }
  })
}

/** The line of past or future usage, and the area below the line. */
export function outlineOf(
  levels: readonly Level[],
  atMs: number,
  frame: Frame,
  band: Band,
  most: number,
  slopes: boolean,
): { readonly line: string; readonly area: string } {
  const [first, ...rest] = levels
  const last = rest.at(-1)
  if (first === undefined || last === undefined) return { line: '', area: '' }
  const bottom = band.top + band.height
  const x = (level: Level) => (frame.now + (level.atMs - atMs) * frame.scale).toFixed(2)
  const y = ({ used }: Level) => (bottom - (band.height * Math.min(used, most)) / most).toFixed(2)
  let line = `M${x(first)} ${y(first)}`
  for (const level of rest) line += slopes ? `L${x(level)} ${y(level)}` : `H${x(level)}V${y(level)}`
  return { line, area: `${line}V${bottom}H${x(first)}Z` }
}

const STEPS_MS = [
  ...[10, 20, 50, 100, 200, 500],
  ...[1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10_800, 21_600, 43_200].map(
    (s) => s * 1000,
  ),
  ...[1, 2, 5, 7, 14, 30, 60, 90].map((days) => days * 86_400_000),
]

const TICK_SPACE = 78
const TICK_MARGIN = 26

/** Returns round times before and after the current time, as many as fit. */
export function ticksOf({
  width,
  scale,
  now,
}: Frame): readonly { readonly x: number; readonly ms: number }[] {
  const step = STEPS_MS.find((ms) => ms * scale >= TICK_SPACE) ?? STEPS_MS.at(-1)!
  const first = -Math.floor(now / scale / step)
  const last = Math.floor((width - now) / scale / step)
  const ticks = Array.from({ length: last - first + 1 }, (_, i) => {
    const ms = (first + i) * step
    return { x: now + ms * scale, ms }
  })
  return ticks.filter(({ x }) => x >= TICK_MARGIN && x <= width - TICK_MARGIN)
}
