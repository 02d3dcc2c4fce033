import { useId, useLayoutEffect, useMemo, useRef, useState } from 'preact/hooks'
import { count, duration, timeOfDay } from '../../format.ts'
import { type ChargeTold, countsMs, type LimitExplained } from './explained.ts'
import {
  type Band,
  type Frame,
  fallOf,
  frameOf,
  isGradual,
  type Level,
  type Mark,
  marksOf,
  outlineOf,
  ticksOf,
} from './picture.ts'
import type { ServiceClock } from './service-clock.ts'

const LEVEL: Band = { top: 22, height: 84 }
const MARKS: Band = { top: 136, height: 84 }
const AXIS = 22

/** What the words for the time to come need. */
const COMING_WIDTH = 104
const FREE_WIDTH = 90

/** So near a pointer has to be to a charge. */
const REACH = 12

/** Where motion is not wanted, things are put where they belong so often. */
const STILL_MS = 1000

/**
 * A window as it moves: charges come in at now, drift to the edge, and are free behind it. Above them how much is used, has
 * been since the page was opened, and will be if nothing comes.
 */
export function WindowPicture({
  limit,
  atMs,
  levels,
  clock,
}: {
  readonly limit: LimitExplained
  readonly atMs: number
  /** What was used, by earlier answers. */
  readonly levels: readonly Level[]
  readonly clock: ServiceClock
}) {
  const place = useRef<HTMLDivElement>(null)
  const moving = useRef<SVGGElement>(null)
  const clip = useId()
  const width = useWidth(place)
  const [chosen, setChosen] = useState<number>()
  const frame = useMemo(
    () => frameOf(limit, width),
    [limit.windowMs, limit.precisionMs, limit.charges === undefined, width],
  )
  const hasTimes = limit.charges !== undefined
  const height = hasTimes ? MARKS.top + MARKS.height + AXIS : LEVEL.top + LEVEL.height + AXIS
  const marks = marksOf(limit, atMs, frame, MARKS)
  useMotion(moving, frame, atMs, clock)

  const charges = limit.charges ?? []
  const selected = charges.findIndex((charge) => charge.atMs === chosen)
  const choose = (index: number): void => {
    setChosen(charges[Math.max(0, Math.min(charges.length - 1, index))]?.atMs)
  }
  const follow = (event: PointerEvent): void => {
    const { left } = place.current!.getBoundingClientRect()
    const moved = (clock.now() - atMs) * frame.scale
    const x = event.clientX - left + moved
    const distance = (mark: Mark) => Math.max(0, mark.x - x, x - mark.x - mark.width)
    const nearest = marks.toSorted((a, b) => distance(a) - distance(b))[0]
    setChosen(nearest !== undefined && distance(nearest) <= REACH ? nearest.atMs : undefined)
  }
  const steer = (event: KeyboardEvent): void => {
    const to = { ArrowLeft: selected - 1, ArrowRight: selected + 1, Home: 0, End: charges.length - 1 }[
      event.key
    ]
    if (to === undefined) return
    event.preventDefault()
    // The newest is where it begins.
    choose(selected < 0 && event.key.startsWith('Arrow') ? charges.length - 1 : to)
  }
  const told = charges[selected]
  const words = told === undefined ? undefined : inWords(told, limit, clock.now())
  return (
    <>
      <div
        ref={place}
        class="window-picture"
        {...(charges.length > 0
          ? {
              role: 'slider',
              tabIndex: 0,
              'aria-label': `Charges of ${limit.name}`,
              'aria-valuemin': 1,
              'aria-valuemax': charges.length,
              'aria-valuenow': selected < 0 ? charges.length : selected + 1,
              'aria-valuetext': words ?? inWords(charges.at(-1)!, limit, clock.now()),
              onKeyDown: steer,
              onPointerMove: follow,
              onPointerLeave: () => setChosen(undefined),
              onBlur: () => setChosen(undefined),
            }
          : {
              role: 'img',
              'aria-label': `${limit.name}: ${count(limit.used)} of ${count(limit.limit)} used`,
            })}
      >
        <svg width={width} height={height} aria-hidden="true">
          <clipPath id={clip}>
            <rect width={width} height={height - AXIS + 1} />
          </clipPath>
          <rect class="to-come" x={frame.now} y={0} width={width - frame.now} height={height - AXIS} />
          <g clip-path={`url(#${clip})`}>
            <g ref={moving} class="moving">
              <Levels limit={limit} atMs={atMs} levels={levels} frame={frame} />
              <Marks marks={marks} chosen={told?.atMs} />
              {windowOf(limit, atMs, frame)}
            </g>
          </g>
          <Borders limit={limit} frame={frame} height={height} />
        </svg>
      </div>
      {hasTimes && (
        <p class="picture-note muted">
          {words ??
            (charges.length > 0
              ? 'Point at a charge, or choose one by the arrow keys.'
              : 'Nothing counts now.')}
        </p>
      )}
    </>
  )
}

/** What was used since the page was opened, and what will be. */
function Levels({
  limit,
  atMs,
  levels,
  frame,
}: {
  readonly limit: LimitExplained
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

function Marks({ marks, chosen }: { readonly marks: readonly Mark[]; readonly chosen: number | undefined }) {
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

/** Where a fixed window ends, and where it has begun if it is as long as any other. */
function windowOf(limit: LimitExplained, atMs: number, frame: Frame) {
  const { declared, resetAfterMs, windowMs, used } = limit
  if (declared?.kind !== 'fixedWindow' || resetAfterMs === null || used === 0) return null
  const end = frame.now + resetAfterMs * frame.scale
  const isFar = end - frame.now > FREE_WIDTH
  const begin = declared.window === undefined ? undefined : end - windowMs * frame.scale
  return (
    <g class="fixed-window" data-end={atMs + resetAfterMs}>
      {begin !== undefined && <line x1={begin} x2={begin} y1={LEVEL.top} y2={LEVEL.top + LEVEL.height} />}
      <line x1={end} x2={end} y1={LEVEL.top} y2={LEVEL.top + LEVEL.height} />
      <text x={end + (isFar ? -5 : 5)} y={LEVEL.top + LEVEL.height - 6} text-anchor={isFar ? 'end' : 'start'}>
        all free again
      </text>
    </g>
  )
}

/** What stands still: now, the edge of the window, the axis. */
function Borders({
  limit,
  frame,
  height,
}: {
  readonly limit: LimitExplained
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
          if nothing comes
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

export function inWords({ atMs, units }: ChargeTold, limit: LimitExplained, nowMs: number): string {
  const leftMs = atMs + countsMs(limit) - nowMs
  const free = leftMs > 0 ? `free again in ${duration(roundly(leftMs))}` : 'free again'
  return `${count(units)} ${units === 1 ? 'unit' : 'units'} at ${timeOfDay(atMs)}, ${free}`
}

/** Whole seconds, where there are some. */
export function roundly(ms: number): number {
  return ms < 1000 ? Math.ceil(ms) : Math.ceil(ms / 1000) * 1000
}

function useWidth(place: { readonly current: HTMLElement | null }): number {
  const [width, setWidth] = useState(600)
  useLayoutEffect(() => {
    const element = place.current!
    const measure = (): void => setWidth(Math.max(240, Math.floor(element.clientWidth)))
    measure()
    const observer = new ResizeObserver(measure)
    observer.observe(element)
    return () => observer.disconnect()
  }, [place])
  return width
}

/** Moves what was drawn as of `atMs` to where it belongs now: with each frame, or now and then where motion is not wanted. */
function useMotion(
  moving: { readonly current: SVGGElement | null },
  { scale }: Frame,
  atMs: number,
  clock: ServiceClock,
): void {
  useLayoutEffect(() => {
    const still = matchMedia('(prefers-reduced-motion: reduce)')
    let frame = 0
    let timer: ReturnType<typeof setTimeout> | undefined
    const put = (): void => {
      const x = -(clock.now() - atMs) * scale
      moving.current?.setAttribute('transform', `translate(${x.toFixed(2)} 0)`)
    }
    // A tab that is not seen is given no frames.
    const move = (): void => {
      put()
      if (still.matches) timer = setTimeout(move, STILL_MS)
      else frame = requestAnimationFrame(move)
    }
    const start = (): void => {
      stop()
      move()
    }
    const stop = (): void => {
      cancelAnimationFrame(frame)
      clearTimeout(timer)
    }
    start()
    still.addEventListener('change', start)
    return () => {
      stop()
      still.removeEventListener('change', start)
    }
  }, [moving, scale, atMs, clock])
}
