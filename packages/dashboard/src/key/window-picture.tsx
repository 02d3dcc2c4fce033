// A moving picture of a window. The pointer and the arrow keys select a charge.

import { useLayoutEffect, useMemo, useRef, useState } from 'preact/hooks'
import type { Charge, ExplainedLimit } from '../api-types.ts'
import { useUniqueId } from '../components/unique-id.ts'
import { count, roundDuration, timeOfDay } from '../format.ts'
import { type ServiceClock, useMotion } from './motion.ts'
import { countsMs, frameOf, type Level, type Mark, marksOf } from './window-geometry.ts'
import { AXIS, Borders, FixedWindow, LEVEL, Levels, MARKS, Marks } from './window-layers.tsx'

/** Maximum distance in pixels at which the pointer selects a charge. */
const REACH = 12

/**
 * A moving window. Charges enter at the current time, drift to the window's edge, and stop counting when they
 * pass it. A chart above them shows past usage, and the future usage if no more requests arrive.
 */
export function WindowPicture({
  limit,
  atMs,
  levels,
  clock,
}: {
  readonly limit: ExplainedLimit
  readonly atMs: number
  /** The usage from earlier responses. */
  readonly levels: readonly Level[]
  readonly clock: ServiceClock
}) {
  const place = useRef<HTMLDivElement>(null)
  const moving = useRef<SVGGElement>(null)
  const clip = useUniqueId()
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
    // The selection starts at the newest charge.
    choose(selected < 0 && event.key.startsWith('Arrow') ? charges.length - 1 : to)
  }
  const selectedCharge = charges[selected]
  const words = selectedCharge === undefined ? undefined : inWords(selectedCharge, limit, clock.now())
  return (
    <>
      <div
        ref={place}
        class="window-picture"
        {...(charges.length > 0
          ? {
              role: 'slider',
              tabIndex: 0,
              'aria-label': `Charges to ${limit.name}`,
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
              <Marks marks={marks} chosen={selectedCharge?.atMs} />
              <FixedWindow limit={limit} atMs={atMs} frame={frame} />
            </g>
          </g>
          <Borders limit={limit} frame={frame} height={height} />
        </svg>
      </div>
      {hasTimes && (
        <p class="picture-note muted">
          {words ??
            (charges.length > 0
              ? 'Point at a charge, or select one with the arrow keys.'
              : 'Nothing is used.')}
        </p>
      )}
    </>
  )
}

function inWords({ atMs, units }: Charge, limit: ExplainedLimit, nowMs: number): string {
  const leftMs = atMs + countsMs(limit) - nowMs
  const free = leftMs > 0 ? `free in ${roundDuration(leftMs)}` : 'free'
  return `${count(units)} ${units === 1 ? 'unit' : 'units'} at ${timeOfDay(atMs)}, ${free}`
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
