// Limit sets: the limits of one limiter, arranged by the logs that they share.
//
// Some logs are read by no limit. They are read and written in the same step as the others, and live and die with their keys:
// - `ban`: if it blocks, the request is denied, and limits are read only to report them. A denial by the limits of its own part is
//   counted in the same step. So requests of such a key are never joined or leased, and their denials are never cached.
// - `reservations`: an entry for each. A settlement without an entry does nothing. The entry's name has the units, so no token is
//   worth more than its reservation.

import { SlidegateError, show } from '../errors.ts'
import type { Entries, Kind, Limit, LogParams } from './limit.ts'

/** The purpose of a log: `count` if limits read it, and requests are charged to it. */
export type Role = 'count' | 'ban' | 'reservations'

/** A piece of stored state, and the limits that read it. */
export interface Log {
  /** The last part of its stored key: `w1`, `f60000`, or `w1s<name>` for a shadow limit. */
  readonly name: string
  readonly kind: Kind
  readonly role: Role
  readonly shadow: boolean
  readonly params: LogParams
  /** The limits of the set that it serves, as indices into {@link LimitSet.limits}, in the order of `params`. */
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
  /** The kinds of entries that its limits keep. */
  readonly keeps: ReadonlySet<Entries>
  /** Whether a key of it may have an override, which each op reads first. */
  readonly isOverridable: boolean
}

/**
 * Arranges limits by their logs.
 *
 * Enforced limits share a log of the same name. A shadow limit has its own, since it is charged at other times. So has each limit of
 * a kind that is unshared: the second of the same name gets a number.
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
  return { limiter, limits, logs, keeps, isOverridable: false }
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

/** With distinct values a request takes one unit, so other limits can't share its cost. */
function checkAlone(limiter: string, limits: readonly Limit[]): void {
  const values = limits.find(({ kind }) => kind.entries?.are === 'value')
  if (values === undefined || (limits.length === 1 && !limiter.includes('/'))) return
  throw new SlidegateError(
    'invalid_limit',
    `limit ${show(values.name)} counts distinct values and needs a limiter of its own, without other limits or dimensions: make two limiters and call both`,
    values.name,
  )
}

/** Limit sets made of others: the same one each time, since stores know sets by identity. */
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
      // Callers choose the names of some.
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

/** The same limits, and a log that none of them reads. */
export function withLog(set: LimitSet, log: Log): LimitSet {
  return extended.of(set, log.name, () => ({ ...set, logs: [...set.logs, log] }))
}

/** The same limits, whose keys may have overrides. */
export function withOverrides(set: LimitSet): LimitSet {
  return overridable.of(set, '', () => ({ ...set, isOverridable: true }))
}
