// Estimates the store's clock, and moves drawings along with it.

import { useLayoutEffect, useRef } from 'preact/hooks'
import type { Frame } from './window-geometry.ts'

/** Maximum error of the estimate. A larger error means that one of the clocks was set. */
const STEP_MS = 500

/** Each response corrects only this share of a smaller error, because network delays vary. */
const SHARE = 0.2

/** An estimate of the store's clock. All times in the usage data come from that clock. */
export interface ServiceClock {
  now(): number
}

/** @param atMs the time of the last response, on the store's clock */
export function useServiceClock(atMs: number | undefined): ServiceClock {
  const offset = useRef<number>()
  const heard = useRef<number>()
  const clock = useRef<ServiceClock>({ now: () => performance.now() + (offset.current ?? 0) })
  if (atMs !== undefined && atMs !== heard.current) {
    heard.current = atMs
    const measured = atMs - performance.now()
    const before = offset.current
    const isSet = before === undefined || Math.abs(measured - before) > STEP_MS
    offset.current = isSet ? measured : before + SHARE * (measured - before)
  }
  return clock.current
}

/** The update interval for users who prefer reduced motion. */
const STILL_MS = 1000

/** Moves a drawing along with the clock. `atMs` is the time that the drawing shows. */
export function useMotion(
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
    // While the tab is hidden, the browser runs no animation frame callbacks, so nothing moves.
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
