// Warns about likely mistakes in the options of limiters whose store is shared by several processes.

import type { LimitSet } from '../limits/limit-set.ts'
import { warn } from '../runtime/platform.ts'
import type { FailureSettings, Store } from '../stores/store.ts'

/** The limits of all open limiters, by store and by limiter name. */
const open = new WeakMap<Store, Map<string, LimitSet>>()

/** Maximum number of names per store. If there are more, all are forgotten. */
const MAX_NAMES = 1000

/** Warns, and returns a function to call when the limiter is closed. */
export function checkSetup(store: Store, settings: FailureSettings): () => void {
  const { limiter, onStoreError, instances, sets, warnings } = settings
  if (!warnings) return () => {}
  if (onStoreError === 'local' && instances === undefined) {
    warn(
      'SLIDEGATE_LOCAL_INSTANCES',
      limiter,
      "onStoreError is 'local' without instances: in an outage, each process admits the whole limit. " +
        'Set instances to the number of processes, or to 1 to allow that.',
    )
  }
  const named = open.get(store) ?? new Map<string, LimitSet>()
  open.set(store, named)
  for (const set of sets) {
    const other = named.get(set.limiter)
    if (other !== undefined && countTogether(set, other)) {
      warn(
        'SLIDEGATE_SHARED_NAME',
        limiter,
        'another limiter with this name and store has different limits, and they count together. ' +
          "Give each its own name, such as name: 'login', or close the other first.",
      )
    }
    if (named.size === MAX_NAMES) named.clear()
    named.set(set.limiter, set)
  }
  return () => {
    for (const set of sets) if (named.get(set.limiter) === set) named.delete(set.limiter)
  }
}

/** Whether two limit sets differ, but share a log. */
function countTogether(one: LimitSet, other: LimitSet): boolean {
  const textOf = ({ limits }: LimitSet) => JSON.stringify(limits, ['name', 'limit', 'windowMs'])
  const isShared = one.logs.some(
    ({ name, role }) => role === 'count' && other.logs.some((log) => log.name === name),
  )
  return isShared && textOf(one) !== textOf(other)
}
