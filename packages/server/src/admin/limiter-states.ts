// Collects the states of limiters, and merges the states from all processes.

import type { LimiterStats } from 'slidegate'
import type { HistogramCounts, LimitCounts } from 'slidegate/metrics'
import type { ActiveLimiter, Service } from '../service/service.ts'

/** The state of a limiter in one process. */
export interface LimiterState {
  readonly stats: LimiterStats
  readonly waiting: { readonly length: number; readonly expectedWaitMs: number | null }
}

export function statesOf(service: Service, names: readonly string[]): Record<string, LimiterState> {
  // During a reload, this process may not have a limiter yet.
  const known = names.filter((name) => service.has(name))
  return Object.fromEntries(known.map((name) => [name, stateOf(service.get(name))]))
}

function stateOf({ limiter }: ActiveLimiter): LimiterState {
  const { length, expectedWaitMs } = limiter.waiting()
  const isEver = Number.isFinite(expectedWaitMs)
  return { stats: limiter.stats(), waiting: { length, expectedWaitMs: isEver ? expectedWaitMs : null } }
}

/** Merges the states of limiters from several processes. */
export function mergeStates(
  processes: readonly Readonly<Record<string, LimiterState>>[],
): ReadonlyMap<string, LimiterState> {
  return byName(processes.flatMap(Object.entries), bothStates)
}

/** Merges the counts for a limiter's limits from several processes. */
export function mergeLimits(processes: readonly (readonly LimitCounts[])[]): LimitCounts[] {
  const named = processes.flat().map((counts): [string, LimitCounts] => [counts.name, counts])
  return Array.from(byName(named, bothLimits).values())
}

function byName<Value>(
  named: readonly (readonly [string, Value])[],
  both: (a: Value, b: Value) => Value,
): ReadonlyMap<string, Value> {
  const found = new Map<string, Value>()
  for (const [name, value] of named) {
    const known = found.get(name)
    found.set(name, known === undefined ? value : both(known, value))
  }
  return found
}

function bothStates(a: LimiterState, b: LimiterState): LimiterState {
  const [one, two] = [a.waiting, b.waiting]
  const expectedWaitMs =
    one.expectedWaitMs === null || two.expectedWaitMs === null
      ? null
      : Math.max(one.expectedWaitMs, two.expectedWaitMs)
  return {
    stats: {
      storeErrors: sums(a.stats.storeErrors, b.stats.storeErrors),
      withoutStore: sums(a.stats.withoutStore, b.stats.withoutStore),
      breakerOpened: a.stats.breakerOpened + b.stats.breakerOpened,
      isStoreDown: a.stats.isStoreDown || b.stats.isStoreDown,
      // All processes see the same jumps in the store's clock, so their counts aren't added up.
      clockSteps: Math.max(a.stats.clockSteps, b.stats.clockSteps),
      waits: bothOf(a.stats.waits, b.stats.waits),
      waitErrors: sums(a.stats.waitErrors, b.stats.waitErrors),
      permits: a.stats.permits + b.stats.permits,
    },
    waiting: { length: one.length + two.length, expectedWaitMs },
  }
}

function bothLimits(a: LimitCounts, b: LimitCounts): LimitCounts {
  return {
    name: a.name,
    denials: a.denials + b.denials,
    shadowDenials: a.shadowDenials + b.shadowDenials,
    nearLimit: a.nearLimit + b.nearLimit,
    utilization: bothOf(a.utilization, b.utilization),
  }
}

function bothOf(a: HistogramCounts, b: HistogramCounts): HistogramCounts {
  const counts = a.counts.map((count, i) => count + (b.counts[i] ?? 0))
  return { bounds: a.bounds, counts, sum: a.sum + b.sum }
}

function sums<Name extends string>(
  a: Readonly<Record<Name, number>>,
  b: Readonly<Record<Name, number>>,
): Record<Name, number> {
  const names = Object.keys(a) as Name[]
  return Object.fromEntries(names.map((name) => [name, a[name] + (b[name] ?? 0)])) as Record<Name, number>
}
