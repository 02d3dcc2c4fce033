import {
  type BreakerOptions,
  fixedWindow,
  type Limit,
  type OnStoreError,
  slidingWindow,
} from '../../src/index.ts'
import type { Random } from './random.ts'

/** A limiter that all processes share, with the same limits. */
export interface Definition {
  readonly name: string
  readonly limits: readonly Limit[]
  /** Whether no charge expires within a run, so that units can be counted exactly. */
  readonly isLong: boolean
}

/** Options that each process chooses. */
export interface Policy {
  readonly onStoreError: OnStoreError
  readonly timeoutMs: number
  readonly instances: number
  readonly breaker: Required<BreakerOptions>
}

export type Composition = 'plain' | 'leases' | 'denyCache' | 'denyCache(leases)' | 'leases(denyCache)'

export interface ProcessOptions {
  readonly composition: Composition
  readonly leaseMs: number
  readonly maxLeasedKeys: number
  readonly maxStaleMs: number
  readonly maxDeniedKeys: number
  readonly isOneConnection: boolean
}

/** How callers behave. */
export interface Traffic {
  readonly lastsMs: number
  readonly meanGapMs: number
  readonly keys: readonly string[]
  /** The share of requests for the first key. */
  readonly hot: number
  readonly costs: readonly number[]
  readonly bursts: readonly number[]
  /** Shares of actions other than a consume. */
  readonly peeks: number
  readonly refunds: number
  readonly charges: number
  readonly resets: number
  readonly closings: number
  readonly stalls: number
  readonly trials: number
  /** The share of bursts that are larger than a batch. */
  readonly floods: number
  readonly flushes: number
  readonly steps: number
}

/** Keys. The first two share a slot in the table of joinable ops. */
const KEYS: readonly string[] = ['a', 'k878a', 'b']

const SECOND_MS = 1000
const HOUR_MS = 3_600_000

export function definitionOf(random: Random, name: string): Definition {
  const isLong = random.chance(0.5)
  const limitOf = () => random.pick([random.int(3, 30), random.int(20, 300), random.int(500, 5000)])
  const windowMs = () => (isLong ? random.pick([HOUR_MS, HOUR_MS / 2]) : random.int(50, 2 * SECOND_MS))
  const sliding = Array.from({ length: random.pick([1, 1, 2]) }, (_, i) => {
    const window = windowMs()
    const precision = Math.min(window, random.pick([1, 1, 7, 50]))
    return slidingWindow({ name: `sliding${i}`, limit: limitOf(), window, precision })
  })
  const limits: Limit[] = [...sliding]
  if (random.chance(0.3)) {
    const window = isLong ? HOUR_MS : random.int(50, SECOND_MS)
    limits.push(fixedWindow({ name: 'fixed', limit: limitOf(), window }))
  }
  if (random.chance(0.2)) {
    const shadow = { name: 'shadow', limit: random.int(1, 100), window: windowMs(), shadow: true }
    limits.push(slidingWindow(shadow))
  }
  return { name, limits, isLong }
}

export function policyOf(random: Random): Policy {
  return {
    onStoreError: random.pick(['throw', 'deny', 'allow', 'local']),
    timeoutMs: random.pick([5, 20, 50, 50, 100]),
    instances: random.int(1, 4),
    breaker: {
      failureRate: random.pick([0.1, 0.5, 0.5, 1]),
      minRequests: random.pick([1, 5, 5, 20]),
      maxBackoffMs: random.pick([10, 100, 500, 500]),
    },
  }
}

export function processOptionsOf(random: Random): ProcessOptions {
  return {
    composition: random.pick([
      'plain',
      'leases',
      'denyCache',
      'denyCache(leases)',
      'denyCache(leases)',
      'leases(denyCache)',
    ]),
    leaseMs: random.int(2, 100),
    maxLeasedKeys: random.pick([1, 1000]),
    maxStaleMs: random.pick([1, 50, 300, 1000]),
    maxDeniedKeys: random.pick([1, 2, 10_000]),
    isOneConnection: random.chance(0.8),
  }
}

export function trafficOf(random: Random): Traffic {
  // Each kind of action is left out of some runs, so that the remaining actions, even rare ones, are more frequent there.
  const often = (share: number) => (random.chance(0.5) ? share : 0)
  return {
    lastsMs: random.pick([300, 800, 1500]),
    meanGapMs: random.pick([2, 5, 15]),
    keys: KEYS.slice(0, random.int(1, 3)),
    hot: random.pick([0, 0.5, 0.9]),
    costs: random.pick([[1], [1, 1, 1, 2, 5], [1, 3, 200]]),
    bursts: random.pick([[1], [1, 1, 2, 10], [1, 1, 5, 40]]),
    peeks: often(0.1),
    refunds: often(0.15),
    charges: often(0.03),
    resets: random.chance(0.2) ? 0.02 : 0,
    closings: random.chance(0.2) ? 0.01 : 0,
    stalls: often(0.02),
    trials: random.pick([0, 0.05, 0.25]),
    floods: random.chance(0.1) ? 0.01 : 0,
    flushes: random.chance(0.15) ? 0.005 : 0,
    steps: random.chance(0.15) ? 0.005 : 0,
  }
}
