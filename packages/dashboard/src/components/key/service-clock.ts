import { useRef } from 'preact/hooks'

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
    const told = atMs - performance.now()
    const before = offset.current
    const isSet = before === undefined || Math.abs(told - before) > STEP_MS
    offset.current = isSet ? told : before + SHARE * (told - before)
  }
  return clock.current
}
