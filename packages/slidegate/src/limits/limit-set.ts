// Limit sets: the limits of one limiter, grouped by the logs that they share.
//
// Some logs belong to no limit:
// - `ban`: if it blocks the key, the request is denied, and the limits are read only to report their usage. If the
//   limits deny a request, the ban counts the denial in the same step. So requests for a key that can be banned are
//   never merged or leased, and their denials are never cached.
// - `reservations`: an entry per reservation. The entry's name contains the units. If the entry doesn't exist, the
//   reservation can't be settled.

import { SlidegateError, show } from '../errors.ts'
import type { Entries, Kind, Limit, LogParams } from './limit.ts'

/** The purpose of a log. Limits read `count` logs, and requests are charged to them. For the other roles, see above. */
export type Role = 'count' | 'ban' | 'reservations'

/** A piece of stored state, and the limits that use it. */
export interface Log {
  /** The suffix of the log's stored key: `w1`, `f60000`, or `w1s<name>` for a shadow limit. */
  readonly name: string
  readonly kind: Kind
  readonly role: Role
  readonly shadow: boolean
  readonly params: LogParams
  /** The limits that read the log, in the order of `params`: indices into {@link LimitSet.limits}. */
  readonly serves: readonly number[]
}

/** The kind of entries that a log keeps. `undefined` if it keeps none, or if limits don't read it. */
export function entriesOf({ kind, role }: Log): Entries | undefined {
  return role === 'count' ? kind.entries?.are : undefined
}

export interface LimitSet {
  /** The limiter's name, which is the namespace of its keys. */
  readonly limiter: string
  readonly limits: readonly Limit[]
  readonly logs: readonly Log[]
  /** The kinds of entries that the set's limits keep. */
  readonly keeps: ReadonlySet<Entries>
  /** Whether the keys can have an override. If so, each op reads it first. */
  readonly isOverridable: boolean
}

/** Groups limits by log name. Shadow limits have their own logs, because their charges differ. */
export function limitSet(limiter: string, limits: readonly Limit[]): LimitSet {
  const names = limits.map(({ name }) => name)
  const repeated = names.find((name, i) => names.indexOf(name) < i)
  if (repeated !== undefined) {
    const message = `two limits are named ${show(repeated)}; give one of them another name`
    throw new SlidegateError('duplicate_limit', message, repeated)
  }
  checkAlone(limiter, limits)
  const served = new Map<string, readonly number[]>()
  limits.forEach((limit, index) => {
    const first = limit.kind.logName(limit) + (limit.shadow ? `s${limit.name}` : '')
    let name = first
    for (let n = 2; limit.kind.isUnshared && served.has(name); n++) name = `${first}-${n}`
    served.set(name, [...(served.get(name) ?? []), index])
  })
  const logs = Array.from(served, ([name, serves]): Log => {
    const shared = serves.map((index) => limits[index]!)
    const { kind, shadow } = shared[0]!
    return { name, kind, role: 'count', shadow, params: kind.params(shared), serves }
  })
  const keeps = new Set(limits.flatMap(({ kind }) => kind.entries?.are ?? []))
  return { limiter, limits, logs, keeps, isOverridable: false }
}

/** A limit on distinct values must be its limiter's only limit. It charges one unit per request, whatever the cost. */
function checkAlone(limiter: string, limits: readonly Limit[]): void {
  const values = limits.find(({ kind }) => kind.entries?.are === 'value')
  if (values === undefined || (limits.length === 1 && !limiter.includes('/'))) return
  const right = 'must be the only limit of a limiter without dimensions; create two limiters and call both'
  const message = `limit ${show(values.name)} counts distinct values, so it ${right}`
  throw new SlidegateError('invalid_limit', message, values.name)
}

const MAX_DERIVED = 256

const sets = new WeakMap<LimitSet, Map<string, LimitSet>>()

/** Returns a limit set derived from another. Reuses the instance, because stores compare sets by identity. */
export function derived(set: LimitSet, name: string, make: () => LimitSet): LimitSet {
  const known = sets.get(set) ?? new Map<string, LimitSet>()
  const found = known.get(name)
  if (found !== undefined) return found
  // Callers can choose some of the names, so the number of names must be bounded.
  if (known.size >= MAX_DERIVED) known.clear()
  const made = make()
  sets.set(set, known.set(name, made))
  return made
}

export function withLog(set: LimitSet, log: Log): LimitSet {
  return derived(set, `log ${log.name}`, () => ({ ...set, logs: [...set.logs, log] }))
}

export function withOverrides(set: LimitSet): LimitSet {
  return derived(set, 'overridable', () => ({ ...set, isOverridable: true }))
}
