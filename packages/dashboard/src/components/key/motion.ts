import { useLayoutEffect, useState } from 'preact/hooks'
import type { Frame } from './picture.ts'
import type { ServiceClock } from './service-clock.ts'

/** Where motion is not wanted, things are put where they belong so often. */
const STILL_MS = 1000

export function useWidth(place: { readonly current: HTMLElement | null }): number {
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
