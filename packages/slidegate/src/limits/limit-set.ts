// Limit sets: the limits of one limiter, arranged by the logs that they share.
//
// Logs of other roles are read and written in the same step as those of limits, and live and die with their keys:
// - `ban`: if it blocks, the request is denied, and limits are read only to report them. A denial by the limits of its own part is
//   counted in the same step, so requests of such a key are never joined or leased, and their denials are never cached.
// - `reservations`: an entry for each. A settlement that finds none does nothing. The entry's name has the units, so no token is
//   worth more than its reservation.

import { SlidegateError, show } from '../errors.ts'
import type { Entries, Kind, Limit, LogParams } from './limit.ts'

/**
 * What a log is there for:
 * - `count`: limits read it, and it is charged.
 * - `ban`, `reservations`: no limit reads it.
 */
export type Role = 'count' | 'ban' | 'reservations'

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

/** The entries of a log that limits read, if it keeps any. */
export function entriesOf({ kind, role }: Log): Entries | undefined {
  return role === 'count' ? kind.entries?.are : undefined
}

/** The limits of one limiter, arranged by the logs that they share. */
export interface LimitSet {
  /** The limiter's name: the namespace of its keys. */
  readonly limiter: string
  readonly limits: readonly Limit[]
  readonly logs: readonly Log[]
  /** What the entries are that limits keep one by one. */
  readonly keeps: ReadonlySet<Entries>
  /** Logs that no limit reads, in the order in which they were added. */
  readonly additions: readonly ExtraLog[]
  /** Whether a key of it may have an override, which each op reads first. */
  readonly isOverridable: boolean
}

/**
 * Enforced limits that read the same stored log share it. A shadow limit has one of its own, because it is
 * charged less often than the enforced ones. So has each limit of a kind whose rate is part of its state: the second of
 * the same name gets a number.
 */
export function limitSet(limiter: string, limits: readonly Limit[]): LimitSet {
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
  const logs = Array.from(servedBy(limits), ([name, serves]): Log => {
    const shared = serves.map((index) => limits[index]!)
    const { kind, shadow } = shared[0]!
    return { name, kind, role: 'count', shadow, params: kind.params(shared), serves }
  })
  const keeps = new Set(limits.flatMap(({ kind }) => kind.entries?.are ?? []))
  return { limiter, limits, logs, keeps, additions: [], isOverridable: false }
}

/** The names of logs, and which limits read each. */
function servedBy(limits: readonly Limit[]): ReadonlyMap<string, readonly number[]> {
  const serves = new Map<string, number[]>()
  limits.forEach((limit, index) => {
    const first = limit.kind.logName(limit) + (limit.shadow ? `s${limit.name}` : '')
    let name = first
    for (let n = 2; limit.kind.isUnshared && serves.has(name); n++) name = `${first}-${n}`
    const sharing = serves.get(name)
    if (sharing === undefined) serves.set(name, [index])
    else sharing.push(index)
  })
  return serves
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
    more = { ...set, logs, additions: [...set.additions, log] }
    known.set(log.name, more)
  }
  return more
}

const overridable = new WeakMap<LimitSet, LimitSet>()

/** The same, whose keys may have overrides: the same set each time. */
export function withOverrides(set: LimitSet): LimitSet {
  let more = overridable.get(set)
  if (more === undefined) {
    more = { ...set, isOverridable: true }
    overridable.set(set, more)
  }
  return more
}
