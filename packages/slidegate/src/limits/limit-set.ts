import { SlidegateError, show } from '../errors.ts'
import type { Entries, Kind, Limit, LogParams } from './limit.ts'

/**
 * What a log is there for:
 * - `count`: limits read it, and it is charged.
 * - `former`: limits read it beside a log of their own, since it may hold what was charged before they were changed. It is
 *   not charged any more.
 * - `ban`, `line`, `reservations`, `table`: no limit reads it.
 */
export type Role = 'count' | 'former' | 'ban' | 'line' | 'reservations' | 'table'

/** A piece of stored state and the limits that read it. */
export interface Log {
  /** Last part of the log's stored key: `w1`, `f60000`, `w1s<name>` for a shadow limit's own. */
  readonly name: string
  readonly kind: Kind
  readonly role: Role
  readonly shadow: boolean
  readonly params: LogParams
  /** Which limits of the set it serves, as indices into {@link LimitSet.limits}, in the order of `params`. */
  readonly serves: readonly number[]
}

/** The limits of one limiter, arranged by the logs that they share. */
export interface LimitSet {
  /** The limiter's name: the namespace of its keys. */
  readonly limiter: string
  readonly limits: readonly Limit[]
  readonly logs: readonly Log[]
  /** What the entries are that limits keep one by one. */
  readonly keeps: ReadonlySet<Entries>
  /** What it was made of besides its limits, so that it can be made again elsewhere. */
  readonly additions: readonly Addition[]
}

/** What was added to a set, in this order: the limits before, then logs that no limit reads. */
export type Addition =
  | { readonly formerly: readonly (readonly Limit[])[] }
  | { readonly log: ExtraLog }
  /** Logs of limits before, to be forgotten with the rest. */
  | { readonly whole: readonly (readonly Limit[])[] }

/**
 * Enforced limits that read the same stored log share it; a shadow limit has one of its own, because it is
 * charged less often than the enforced ones.
 *
 * @param formerly sets of limits that were in force before, whose logs may still hold what counts
 */
export function limitSet(
  limiter: string,
  limits: readonly Limit[],
  formerly: readonly (readonly Limit[])[] = [],
): LimitSet {
  const names = new Set<string>()
  for (const limit of limits) {
    if (names.has(limit.name)) {
      throw new SlidegateError(
        'duplicate_limit',
        `two limits are named ${show(limit.name)}; give one of them a name of its own`,
        limit.name,
      )
    }
    names.add(limit.name)
  }
  checkAlone(limiter, limits)
  const serves = new Map<string, number[]>()
  limits.forEach((limit, index) => {
    const name = logNameOf(limit)
    const sharing = serves.get(name)
    if (sharing === undefined) serves.set(name, [index])
    else sharing.push(index)
  })
  const logs = Array.from(serves, ([name, indices]): Log => {
    const shared = indices.map((index) => limits[index]!)
    const { kind, shadow } = shared[0]!
    return { name, kind, role: 'count', shadow, params: kind.params(shared), serves: indices }
  })
  const keeps = new Set(limits.flatMap(({ kind }) => kind.entries?.are ?? []))
  const additions = formerly.length === 0 ? [] : [{ formerly }]
  return { limiter, limits, logs: [...logs, ...formerLogs(limits, logs, formerly)], keeps, additions }
}

/** A limit of distinct values takes one unit of one key with each request, whatever other limits would take. */
function checkAlone(limiter: string, limits: readonly Limit[]): void {
  const values = limits.find(({ kind }) => kind.entries?.are === 'value')
  if (values === undefined || (limits.length === 1 && !limiter.includes('/'))) return
  throw new SlidegateError(
    'invalid_limit',
    `limit ${show(values.name)} counts distinct values and needs a limiter of its own, without other limits or dimensions: make two limiters and call both`,
    values.name,
  )
}

/** A log that no limit reads. */
export type ExtraLog = Omit<Log, 'shadow' | 'serves'>

const extended = new WeakMap<LimitSet, Map<string, LimitSet>>()

/** The same, and a log that no limit reads: the same set for the same log, by its name. */
export function withLog(set: LimitSet, log: ExtraLog): LimitSet {
  let known = extended.get(set)
  if (known === undefined) {
    known = new Map()
    extended.set(set, known)
  }
  let more = known.get(log.name)
  if (more === undefined) {
    const logs = [...set.logs, { ...log, shadow: false, serves: [] }]
    more = { ...set, logs, additions: [...set.additions, { log }] }
    known.set(log.name, more)
  }
  return more
}

/** The same, and whatever these limits have charged as well: to be forgotten with the rest. */
export function withLogsOf(set: LimitSet, formerly: readonly (readonly Limit[])[]): LimitSet {
  const logs = new Map(set.logs.map((log) => [log.name, log]))
  for (const limits of formerly) {
    for (const log of limitSet(set.limiter, limits).logs) {
      if (!logs.has(log.name)) logs.set(log.name, { ...log, role: 'former', serves: [] })
    }
  }
  return { ...set, logs: Array.from(logs.values()), additions: [...set.additions, { whole: formerly }] }
}

function logNameOf(limit: Limit): string {
  return limit.kind.logName(limit) + (limit.shadow ? `s${limit.name}` : '')
}

/**
 * For each log, those of earlier limits that may hold what it would hold had it been charged then. All logs of a set hold
 * the same requests, so of each set it is one; and one that is charged still would be counted twice.
 */
function formerLogs(
  limits: readonly Limit[],
  logs: readonly Log[],
  formerly: readonly (readonly Limit[])[],
): Log[] {
  const known = new Set(logs.map(({ name }) => name))
  const serves = new Map<string, { readonly limit: Limit; readonly serves: Set<number> }>()
  for (const set of formerly) {
    const then = set.filter(({ shadow }) => !shadow)
    const namesThen = new Set(then.map(logNameOf))
    const gone = then.filter((limit) => !known.has(logNameOf(limit)))
    const likest = new Map<Kind, Limit | undefined>()
    for (const log of logs) {
      if (log.shadow || namesThen.has(log.name)) continue
      if (!likest.has(log.kind)) likest.set(log.kind, likestOf(gone, log.kind))
      const limit = likest.get(log.kind)
      if (limit === undefined) continue
      const name = logNameOf(limit)
      const found = serves.get(name) ?? { limit, serves: new Set() }
      for (const i of log.serves) found.serves.add(i)
      serves.set(name, found)
    }
  }
  return Array.from(serves, ([name, found]): Log => {
    const { kind } = found.limit
    const served = Array.from(found.serves)
    const windows = new Set(served.map((i) => limits[i]!.windowMs))
    // One that keeps times tells of any window, one that keeps entries of one at a time; any other only of its own.
    const tells = kind.keepsTimes && (kind.entries === undefined || windows.size === 1)
    const asked = tells
      ? served.map((i) => ({
          ...found.limit,
          windowMs: askedMs(found.limit, limits[i]!),
          limit: limits[i]!.limit,
        }))
      : [found.limit]
    return { name, kind, role: 'former', shadow: false, params: kind.params(asked), serves: served }
  })
}

/** Entries that have left their own window may be gone, or not yet. */
function askedMs(former: Limit, limit: Limit): number {
  return former.kind.entries === undefined ? limit.windowMs : Math.min(limit.windowMs, former.windowMs)
}

/** Whether what one kind has counted is of use to the other: holders and values are counted apart from requests. */
function tellsOf(former: Kind, kind: Kind): boolean {
  return countedBy(former) === countedBy(kind)
}

function countedBy({ entries }: Kind): string {
  return entries?.are === 'holder' || entries?.are === 'value' ? entries.are : 'request'
}

function likestOf(gone: readonly Limit[], kind: Kind): Limit | undefined {
  const telling = gone.filter((limit) => tellsOf(limit.kind, kind))
  return telling.sort((a, b) => likeness(b, kind) - likeness(a, kind) || b.windowMs - a.windowMs)[0]
}

function likeness(limit: Limit, kind: Kind): number {
  return (limit.kind.tag === kind.tag ? 2 : 0) + (limit.kind.keepsTimes ? 1 : 0)
}
