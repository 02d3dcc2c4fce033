// Merges the reports from all processes into an overview.

import type { OnStoreError } from 'slidegate'
import type { StoreOutage } from '../metrics/limiter-counts.ts'
import type { FileState } from '../service/readiness.ts'
import type { InstanceStatus, LimiterRates, RedisServerStatus, StoreStatus } from './api-types.ts'
import type { Callers } from './merge-keys.ts'
import type { Process } from './presence.ts'
import type { MinuteRates, SecondCounts } from './rates.ts'
import { type Calls, mergeCalls } from './store-calls.ts'

/** One process's report, as plain JSON. */
export interface ProcessReport {
  readonly process: Process
  readonly isRedis: boolean
  readonly fileState: FileState
  readonly calls: Calls | undefined
  readonly limiters: readonly LimiterReport[]
}

interface LimiterReport {
  readonly name: string
  readonly latest: SecondCounts
  readonly lastMinute: MinuteRates
  readonly waiting: number
  readonly isStoreDown: boolean
  /** The current outage, or one that ended recently. */
  readonly outage?: StoreOutage
  readonly onStoreError: OnStoreError
  readonly instances: number
}

/** The states, from worst to best. */
const FILE_STATES: readonly FileState[] = ['invalid', 'restart', 'applied']

export function instancesOf(reports: readonly ProcessReport[], self: Process): InstanceStatus[] {
  const byId = new Map<string, InstanceStatus>()
  for (const { process, fileState, limiters } of reports) {
    const { process: _, ...own } = process
    const known = byId.get(own.id)
    // The worker that started first supplies the facts about its instance.
    const instance = known === undefined || own.startedAtMs < known.startedAtMs ? own : known
    const perSecond = limiters.reduce((sum, { latest }) => sum + decisionsIn(latest), known?.perSecond ?? 0)
    const worst = FILE_STATES.find((each) => each === fileState || each === known?.configuration)!
    byId.set(own.id, { ...instance, isSelf: own.id === self.id, perSecond, configuration: worst })
  }
  return Array.from(byId.values()).sort((a, b) => a.startedAtMs - b.startedAtMs || (a.id < b.id ? -1 : 1))
}

/** The decisions in the latest second. */
export function decisionsIn({ allowed, denied }: SecondCounts): number {
  return (allowed[0] ?? 0) + (denied[0] ?? 0)
}

export function storeOf(
  reports: readonly ProcessReport[],
  servers: readonly RedisServerStatus[],
): StoreStatus {
  const isRedis = reports.some((each) => each.isRedis)
  const isDown = reports.some(({ limiters }) => limiters.some(({ isStoreDown }) => isStoreDown))
  const calls = reports.flatMap((each) => each.calls ?? [])
  return { kind: isRedis ? 'redis' : 'memory', up: !isDown, ...mergeCalls(calls), servers }
}

export function limitersOf(
  reports: readonly ProcessReport[],
  callers: ReadonlyMap<string, Callers>,
): readonly LimiterRates[] {
  const byName = new Map<string, LimiterReport[]>()
  for (const { limiters } of reports) {
    for (const limiter of limiters) {
      const known = byName.get(limiter.name)
      if (known === undefined) byName.set(limiter.name, [limiter])
      else known.push(limiter)
    }
  }
  return Array.from(byName.keys())
    .sort()
    .map((name) => {
      const each = byName.get(name)!
      const sum = (of: (latest: SecondCounts) => readonly number[]) =>
        each.reduce((total, { latest }) => total + (of(latest)[0] ?? 0), 0)
      return {
        name,
        allowedPerSecond: sum(({ allowed }) => allowed),
        deniedPerSecond: sum(({ denied }) => denied),
        shadowDeniedPerSecond: sum(({ shadowDenied }) => shadowDenied),
        withoutStorePerSecond: sum(({ withoutStore }) => withoutStore),
        lastMinute: {
          allowedPerSecond: perSecond(each, ({ allowed }) => allowed),
          deniedPerSecond: perSecond(each, ({ denied }) => denied),
          shadowDeniedPerSecond: perSecond(each, ({ shadowDenied }) => shadowDenied),
        },
        waiting: each.reduce((total, { waiting }) => total + waiting, 0),
        callers: callers.get(name)?.distinct ?? 0,
        ...outageOf(each),
      }
    })
}

/** Divides by the longest time that any process has counted. Otherwise, new processes would have too much weight. */
function perSecond(reports: readonly LimiterReport[], of: (minute: MinuteRates) => number): number {
  const seconds = Math.max(1, ...reports.map(({ lastMinute }) => lastMinute.seconds))
  return reports.reduce((sum, { lastMinute }) => sum + of(lastMinute), 0) / seconds
}

/** Returns the current or latest outage. For a current one, includes how requests are decided. */
function outageOf(reports: readonly LimiterReport[]): Pick<LimiterRates, 'outage' | 'lastOutage'> {
  const down = reports.filter(({ isStoreDown }) => isStoreDown)
  if (down.length > 0) {
    const { onStoreError, instances } = down[0]!
    const sinceMs = Math.min(...down.flatMap(({ outage }) => outage?.sinceMs ?? []))
    const since = Number.isFinite(sinceMs) ? { sinceMs } : {}
    return {
      outage: { onStoreError, instances, processesDown: down.length, processes: reports.length, ...since },
    }
  }
  const ended = reports.flatMap(({ outage: { sinceMs = 0, untilMs } = {} }) =>
    untilMs === undefined ? [] : [{ sinceMs, untilMs }],
  )
  const lastOutage = ended.toSorted((a, b) => b.untilMs - a.untilMs)[0]
  return lastOutage === undefined ? {} : { lastOutage }
}
