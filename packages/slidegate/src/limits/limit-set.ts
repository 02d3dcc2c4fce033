import { SlidegateError, show } from '../errors.ts'
import type { Kind, Limit, LogParams } from './limit.ts'

/** A piece of stored state and the limits that read it. */
export interface Log {
  /** Last part of the log's stored key: `w1`, `f60000`, `w1s<name>` for a shadow limit's own. */
  readonly name: string
  readonly kind: Kind
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
}

/**
 * Enforced limits that read the same stored log share it; a shadow limit has one of its own, because it is
 * charged less often than the enforced ones.
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
  const serves = new Map<string, number[]>()
  limits.forEach((limit, index) => {
    const name = limit.kind.logName(limit) + (limit.shadow ? `s${limit.name}` : '')
    const sharing = serves.get(name)
    if (sharing === undefined) serves.set(name, [index])
    else sharing.push(index)
  })
  const logs = Array.from(serves, ([name, indices]): Log => {
    const shared = indices.map((index) => limits[index]!)
    const { kind, shadow } = shared[0]!
    return { name, kind, shadow, params: kind.params(shared), serves: indices }
  })
  return { limiter, limits, logs }
}
