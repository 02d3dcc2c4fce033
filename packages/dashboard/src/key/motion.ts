// The store's clock, and drawings that move with it.

import { useLayoutEffect, useRef } from 'preact/hooks'
import type { Frame } from './window-geometry.ts'

/** A greater difference than this is a clock that was set. */
const STEP_MS = 500

/** How much of a smaller one is believed at a time: what answers take on their way differs. */
const SHARE = 0.2

/** The time by the store's clock, as far as answers tell it: what a key has used is told by that one, never by this machine's. */
export interface ServiceClock {
  now(): number
}

/** @param atMs of the last answer */
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

/** Where motion is not wanted, things are put where they belong so often. */
const STILL_MS = 1000

/** Moves what was drawn as of `atMs` to where it belongs now: with each frame, or now and then where motion is not wanted. */
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
