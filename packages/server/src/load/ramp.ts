// An open-loop ramp: its rates, the schedule of a step, and when a step is saturated.

import { messageOf } from '../../../replay/src/errors.ts'

/** The time, and a way to wait. Times are in milliseconds. */
export interface LoadClock {
  now(): number
  /** Waits until this time, or for slightly less. Lets pending responses be read in the meantime. */
  until(atMs: number): Promise<void>
}

/** Sends request number `i`. Resolves to whether it was allowed, and rejects if there was no decision. */
export type Send = (i: number) => Promise<boolean>

export interface StepOptions {
  /** Requests per second. */
  readonly rate: number
  readonly seconds: number
  readonly maxInFlight: number
  readonly send: Send
  readonly clock: LoadClock
  readonly signal: AbortSignal
}

export interface Step {
  /** Scheduled requests per second. */
  readonly offered: number
  /** Decisions per second, averaged over the whole step, including the wait for its last decision. */
  readonly achieved: number
  readonly requests: number
  /** Scheduled requests that weren't sent, because too many were in flight. */
  readonly unsent: number
  readonly denied: number
  readonly errors: number
  /** The message of the first error. */
  readonly firstError?: string
  /** Times from the scheduled arrival to the decision. All 0 if there was no decision. */
  readonly latencyMs: Readonly<Record<'p50' | 'p90' | 'p99' | 'p99_9' | 'max', number>>
}

export type Saturation = 'errors' | 'in flight' | 'rate'

/** A step that achieves less than this share of its rate is saturated. */
const ENOUGH = 0.9

/** A step with a larger share of errors is saturated. A brief stall of this machine can cause a few errors. */
const FEW_ERRORS = 0.01

/** Number of requests to send before responses are read again. */
const BURST = 16

/** Returns the rate of each step. Rates grow by `factor`, and the last one is `to`. */
export function ratesOf(from: number, to: number, factor: number): number[] {
  const rates = [from]
  for (let rate = from; rate < to; rates.push(rate)) {
    rate = Math.min(to, Math.max(rate + 1, Math.round(rate * factor)))
  }
  return rates
}

/** Returns when a request is due, in milliseconds after the start of its step. */
export function dueMs(i: number, rate: number): number {
  return (1000 * i) / rate
}

/** Returns why a step is saturated. Undefined if it isn't. */
export function saturationOf(step: Step): Saturation | undefined {
  const { offered, achieved, requests, unsent, errors } = step
  if (errors > FEW_ERRORS * requests) return 'errors'
  if (unsent > 0) return 'in flight'
  return achieved < ENOUGH * offered ? 'rate' : undefined
}

/**
 * Sends a step's requests at their scheduled times, without waiting for responses.
 *
 * At the end, waits for all responses. Ends early if too many requests are in flight, or immediately if the signal
 * aborts.
 */
export async function runStep(options: StepOptions): Promise<Step> {
  const { rate, seconds, maxInFlight, send, clock, signal } = options
  const total = Math.max(1, Math.round(rate * seconds))
  const latencies = new Float64Array(total)
  const startMs = clock.now()
  let lastMs = startMs
  let [sent, decisions, denied, errors] = [0, 0, 0, 0]
  let firstError: unknown
  let onIdle = () => {}
  const ended = () => {
    if (decisions + errors === sent) onIdle()
  }
  const fire = (i: number) => {
    send(i).then(
      (allowed) => {
        lastMs = clock.now()
        latencies[decisions++] = lastMs - startMs - dueMs(i, rate)
        if (!allowed) denied++
        ended()
      },
      (error) => {
        firstError ??= error
        errors++
        ended()
      },
    )
  }
  let isFull = false
  while (sent < total && !signal.aborted) {
    const waitMs = startMs + dueMs(sent, rate) - clock.now()
    if (waitMs > 0) await clock.until(clock.now() + waitMs)
    else if (sent - decisions - errors >= maxInFlight) {
      isFull = true
      break
    } else {
      fire(sent++)
      if (sent % BURST === 0) await clock.until(clock.now())
    }
  }
  if (decisions + errors < sent) {
    await new Promise<void>((resolve) => {
      onIdle = resolve
      // Replaces the previous step's handler.
      signal.onabort = () => resolve()
      if (signal.aborted) resolve()
    })
  }
  const plannedMs = isFull ? 0 : 1000 * seconds
  const tookMs = Math.max(plannedMs, lastMs - startMs)
  return {
    offered: rate,
    achieved: tookMs > 0 ? Math.round((1000 * decisions) / tookMs) : 0,
    ...{ requests: sent, unsent: isFull ? total - sent : 0, denied, errors },
    ...(errors > 0 && { firstError: messageOf(firstError) }),
    latencyMs: quantilesOf(latencies.subarray(0, decisions).sort()),
  }
}

function quantilesOf(sorted: Float64Array): Step['latencyMs'] {
  const at = (share: number) => {
    const ms = sorted[Math.max(0, Math.ceil(share * sorted.length) - 1)] ?? 0
    return Math.round(100 * ms) / 100
  }
  return { p50: at(0.5), p90: at(0.9), p99: at(0.99), p99_9: at(0.999), max: at(1) }
}

export interface RampOptions extends Omit<StepOptions, 'rate'> {
  readonly rates: readonly number[]
}

/** Runs steps until one is saturated, or until the signal aborts. Leaves out an unfinished step. */
export async function runRamp({ rates, ...options }: RampOptions): Promise<Step[]> {
  const steps: Step[] = []
  for (const rate of rates) {
    const step = await runStep({ ...options, rate })
    if (options.signal.aborted) break
    steps.push(step)
    if (saturationOf(step) !== undefined) break
  }
  return steps
}

/** This process's clock. Waits of less than a millisecond use no timer, because timers are coarser than that. */
export const realClock: LoadClock = {
  now: () => performance.now(),
  until(atMs) {
    const waitMs = Math.floor(atMs - performance.now())
    return new Promise((resolve) => {
      if (waitMs >= 1) setTimeout(resolve, waitMs)
      else setImmediate(resolve)
    })
  },
}
