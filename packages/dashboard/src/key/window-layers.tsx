// The layers of the window picture.

import type { ExplainedLimit } from '../api-types.ts'
import { count, duration } from '../format.ts'
import {
  type Band,
  type Frame,
  fallOf,
  isGradual,
  type Level,
  type Mark,
  outlineOf,
  ticksOf,
} from './window-geometry.ts'

export const LEVEL: Band = { top: 22, height: 84 }
export const MARKS: Band = { top: 136, height: 84 }
export const AXIS = 22

/** Widths of the labels for future times, in pixels. */
const COMING_WIDTH = 104
const FREE_WIDTH = 90

/** Shows the usage since the page was opened, and the future usage. */
export function Levels({
  limit,
  atMs,
  levels,
  frame,
}: {
  readonly limit: ExplainedLimit
  readonly atMs: number
  readonly levels: readonly Level[]
  readonly frame: Frame
}) {
  const most = Math.max(limit.limit, limit.used)
  const slopes = isGradual(limit)
  const now = { atMs, used: limit.used }
  const fall = fallOf(limit, atMs)
  const bound = LEVEL.top + LEVEL.height * (1 - limit.limit / most)
  const before = outlineOf([...levels, now], atMs, frame, LEVEL, most, slopes)
  const after = outlineOf([now, ...fall], atMs, frame, LEVEL, most, slopes)
  return (
    <>
      <path class="level" d={before.area} />
      <path class="level-line" d={before.line} />
      <path class="level fall" d={after.area} />
      <path class="level-line fall" d={after.line} />
      <line class="bound" x1={-10 * frame.width} x2={10 * frame.width} y1={bound} y2={bound} />
    </>
  )
}

export function Marks({
  marks,
  chosen,
}: {
  readonly marks: readonly Mark[]
  readonly chosen: number | undefined
}) {
  return (
    <g class="marks">
      {marks.map(({ atMs, units, ...box }) => (
        <rect
          key={atMs}
          class={atMs === chosen ? 'mark chosen' : 'mark'}
          data-at={atMs}
          data-units={units}
          {...box}
          x={Number(box.x.toFixed(2))}
          y={Number(box.y.toFixed(2))}
        />
      ))}
    </g>
  )
}

/** Marks the end of a fixed window. Also marks its start, unless windows differ in length. */
export function FixedWindow({
  limit,
  atMs,
  frame,
}: {
  readonly limit: ExplainedLimit
  readonly atMs: number
  readonly frame: Frame
}) {
  const { declared, resetAfterMs, windowMs, used } = limit
  const isFixed = declared?.kind === 'fixedWindow' || declared?.kind === 'calendarWindow'
  if (!isFixed || resetAfterMs === null || used === 0) return null
  const end = frame.now + resetAfterMs * frame.scale
  const isFar = end - frame.now > FREE_WIDTH
  const begin = declared.window === undefined ? undefined : end - windowMs * frame.scale
  return (
    <g class="fixed-window" data-end={atMs + resetAfterMs}>
      {begin !== undefined && <line x1={begin} x2={begin} y1={LEVEL.top} y2={LEVEL.top + LEVEL.height} />}
      <line x1={end} x2={end} y1={LEVEL.top} y2={LEVEL.top + LEVEL.height} />
      <text x={end + (isFar ? -5 : 5)} y={LEVEL.top + LEVEL.height - 6} text-anchor={isFar ? 'end' : 'start'}>
        resets
      </text>
    </g>
  )
}

/** The parts that don't move: the current time, the window's edge, the axis. */
export function Borders({
  limit,
  frame,
  height,
}: {
  readonly limit: ExplainedLimit
  readonly frame: Frame
  readonly height: number
}) {
  const { now, edge, width } = frame
  const bottom = height - AXIS
  const most = Math.max(1, ...(limit.charges ?? []).map(({ units }) => units))
  return (
    <>
      {edge !== undefined && (
        <>
          <rect class="gone" x={0} y={0} width={edge} height={bottom} />
          <line class="edge" x1={edge} x2={edge} y1={0} y2={bottom} />
          <text class="label" x={edge + 5} y={MARKS.top - 10}>
            charges, each up to {count(most)} {most === 1 ? 'unit' : 'units'}
          </text>
        </>
      )}
      <text class="label" x={(edge ?? 0) + 5} y={15}>
        used, of {count(limit.limit)}
      </text>
      <line class="now" x1={now} x2={now} y1={0} y2={bottom} />
      {width - now > COMING_WIDTH && (
        <text class="label" x={now + 5} y={15}>
          if idle
        </text>
      )}
      <line class="axis" x1={0} x2={width} y1={bottom} y2={bottom} />
      {ticksOf(frame).map(({ x, ms }) => (
        <g key={ms} class="tick">
          <line x1={x} x2={x} y1={bottom} y2={bottom + 4} />
          <text x={x} y={height - 5} text-anchor="middle">
            {ms === 0 ? 'now' : `${ms < 0 ? '−' : '+'}${duration(Math.abs(ms))}`}
          </text>
        </g>
      ))}
    </>
  )
}
