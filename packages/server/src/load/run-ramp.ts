// Runs a ramp against a target, and reports the results.

import { alignColumns, formatCount, formatPercent, printable } from '../../../replay/src/text.ts'
import { realClock, runRamp, type Saturation, type Step, saturationOf } from './ramp.ts'
import type { LoadTarget } from './targets.ts'

/** Maximum number of requests in flight. A step that reaches it is saturated. */
const MAX_IN_FLIGHT = 4096

export interface RampPlan {
  /** A description of the target, for the report. */
  readonly name: string
  readonly target: LoadTarget
  readonly rates: readonly number[]
  readonly seconds: number
  readonly keys: number
}

/** The results. Latencies are in milliseconds, rates are per second. */
export interface RampReport {
  readonly target: string
  /** Duration of each step. */
  readonly seconds: number
  readonly keys: number
  readonly steps: readonly Step[]
  /** The rate of the last step that wasn't saturated, or `null` if all steps were. */
  readonly sustained: number | null
  /** Why the last step is saturated, or `null` if it isn't. */
  readonly saturation: Saturation | null
  /** Whether the ramp was stopped early, for example with Ctrl-C. */
  readonly stopped: boolean
}

/** Runs the ramp to its end or until Ctrl-C, and closes the target. */
export async function reportRamp({ name, target, rates, seconds, keys }: RampPlan): Promise<RampReport> {
  const stopping = new AbortController()
  const stop = () => stopping.abort()
  process.once('SIGINT', stop).once('SIGTERM', stop)
  try {
    const { send } = target
    const { signal } = stopping
    const steps = await runRamp({
      ...{ rates, seconds, maxInFlight: MAX_IN_FLIGHT, send, clock: realClock, signal },
    })
    return {
      ...{ target: name, seconds, keys, steps },
      sustained: steps.findLast((step) => saturationOf(step) === undefined)?.offered ?? null,
      saturation: (steps.length > 0 && saturationOf(steps.at(-1)!)) || null,
      stopped: signal.aborted,
    }
  } finally {
    process.off('SIGINT', stop).off('SIGTERM', stop)
    await target.close()
  }
}

export function rampLinesOf(limiter: string, report: RampReport): string[] {
  const { target, seconds, keys, steps } = report
  const rows = steps.map(({ offered, achieved, latencyMs: { p50, p90, p99, p99_9 }, errors, denied }) => [
    ...[offered, achieved].map(formatCount),
    ...[p50, p90, p99, p99_9].map((ms) => `${ms}`),
    ...[errors, denied].map(formatCount),
  ])
  const head = ['offered/s', 'achieved/s', 'p50 ms', 'p90', 'p99', 'p99.9', 'errors', 'denied']
  return [
    `${limiter}: ${target}, ${formatCount(keys)} keys, steps of ${seconds} s`,
    ...alignColumns([head, ...rows]),
    `  ${verdictOf(report)}`,
    '  Latency is measured from the scheduled time. If the service runs on the same machine, this program competes with it for CPU time.',
  ]
}

function verdictOf({ steps, sustained, saturation, stopped }: RampReport): string {
  const last = steps.at(-1)
  if (last === undefined) return 'stopped before the first step ended'
  if (saturation === null) {
    return `${stopped ? 'stopped' : 'not saturated'}: ${formatCount(last.offered)}/s sustained`
  }
  const { offered, achieved, requests, errors, firstError = '' } = last
  const why = {
    errors: `${formatCount(errors)} of ${formatCount(requests)} requests got no decision; the first error is "${printable(firstError)}"`,
    'in flight': `${formatCount(MAX_IN_FLIGHT)} requests in flight, ${formatCount(achieved)}/s achieved`,
    rate: `${formatCount(achieved)}/s achieved (${formatPercent(achieved, offered)})`,
  }[saturation]
  const kept = sustained === null ? 'no rate sustained' : `${formatCount(sustained)}/s sustained`
  return `saturated at ${formatCount(offered)}/s: ${why}. ${kept}`
}
