// The store's clock, and drawings that move with it.

import { useLayoutEffect, useRef } from 'preact/hooks'
import type { Frame } from './window-geometry.ts'

/** A larger difference means that one of the clocks was set. */
const STEP_MS = 500

/** The share of a smaller difference to correct at a time, because network delays vary. */
const SHARE = 0.2

/** An estimate of the store's clock, which all times of usage come from. */
export interface ServiceClock {
  now(): number
}

/** @param atMs the time of the last response */
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

/** The interval of updates for users who prefer reduced motion. */
const STILL_MS = 1000

/** Moves a drawing of the state at `atMs` along with the clock. */
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
    // A hidden tab gets no frames.
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
