// Limit sets: the limits of one limiter, grouped by the logs that they share.
//
// Some logs belong to no limit. They are read and written together with the others, and deleted with their keys:
// - `ban`: if it blocks, the request is denied, and the limits are read only to report them. A denial by the limits of its own
//   part is counted in the same step. So requests for such a key are never joined or leased, and their denials are never cached.
// - `reservations`: an entry for each. Settling one without an entry does nothing. The entry's name contains the units, so a
//   token is never worth more than its reservation.

import { SlidegateError, show } from '../errors.ts'
import type { Entries, Kind, Limit, LogParams } from './limit.ts'

/** The purpose of a log. Limits read a `count` log, and requests are charged to it. */
export type Role = 'count' | 'ban' | 'reservations'

/** A piece of stored state, and the limits that use it. */
export interface Log {
  /** The last part of its stored key: `w1`, `f60000`, or `w1s<name>` for a shadow limit. */
  readonly name: string
  readonly kind: Kind
  readonly role: Role
  readonly shadow: boolean
  readonly params: LogParams
  /** Indices into {@link LimitSet.limits} of the limits that read it, in the order of `params`. */
  readonly serves: readonly number[]
}

/** The kind of entries in a log that limits read, if it keeps any. */
export function entriesOf({ kind, role }: Log): Entries | undefined {
  return role === 'count' ? kind.entries?.are : undefined
}

/** The limits of one limiter, grouped by the logs that they share. */
export interface LimitSet {
  /** The limiter's name, which is the namespace of its keys. */
  readonly limiter: string
  readonly limits: readonly Limit[]
  readonly logs: readonly Log[]
  /** The kinds of entries that its limits keep. */
  readonly keeps: ReadonlySet<Entries>
  /** Whether its keys can have an override, which each op reads first. */
  readonly isOverridable: boolean
}

/**
 * Groups limits by their logs.
 *
 * Enforced limits with the same log name share the log. A shadow limit has its own log, because it is charged for other requests.
 * So does each limit of an unshared kind: if a log name repeats, it gets a number.
 */
export function limitSet(limiter: string, limits: readonly Limit[]): LimitSet {
  const names = new Set<string>()
  for (const limit of limits) {
    if (names.has(limit.name)) {
      throw new SlidegateError(
        'duplicate_limit',
        `two limits are named ${show(limit.name)}; give one of them another name`,
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
  return { limiter, limits, logs, keeps, isOverridable: false }
}

/** Log names, and the limits that read each log. */
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

/** A distinct-values limit can't be combined with others, because it charges one unit per request. */
function checkAlone(limiter: string, limits: readonly Limit[]): void {
  const values = limits.find(({ kind }) => kind.entries?.are === 'value')
  if (values === undefined || (limits.length === 1 && !limiter.includes('/'))) return
  throw new SlidegateError(
    'invalid_limit',
    `limit ${show(values.name)} counts distinct values, so it must be its limiter's only limit, without dimensions; create two limiters and call both`,
    values.name,
  )
}

/** Limit sets derived from others. Returns the same one each time, because stores recognize sets by identity. */
export class DerivedSets {
  readonly #sets = new WeakMap<LimitSet, Map<string, LimitSet>>()

  of(set: LimitSet, name: string, make: () => LimitSet): LimitSet {
    let known = this.#sets.get(set)
    if (known === undefined) {
      known = new Map()
      this.#sets.set(set, known)
    }
    let made = known.get(name)
    if (made === undefined) {
      // Callers can choose some of the keys.
      if (known.size >= MAX_DERIVED) known.clear()
      made = make()
      known.set(name, made)
    }
    return made
  }
}

const MAX_DERIVED = 256

const extended = new DerivedSets()
const overridable = new DerivedSets()

/** The same limits, with another log that no limit reads. */
export function withLog(set: LimitSet, log: Log): LimitSet {
  return extended.of(set, log.name, () => ({ ...set, logs: [...set.logs, log] }))
}

/** The same limits for keys that can have overrides. */
export function withOverrides(set: LimitSet): LimitSet {
  return overridable.of(set, '', () => ({ ...set, isOverridable: true }))
}
