import { type Decision, isCounted } from '../decision.ts'
import type { LimitSet, Log } from '../limits/limit-set.ts'
import type { ConsumeOutcome, Debit, Part } from '../stores/store.ts'

/** Per log, whether an admitted request is charged to it: of most requests all, or all that are enforced. */
interface Usual {
  readonly all: readonly boolean[]
  readonly enforced: readonly boolean[]
}

const usualOf = new WeakMap<LimitSet, Usual>()
/** That of the last decision: most are of the same limits as the one before. */
let last: { readonly set: LimitSet | undefined; readonly usual: Usual } = {
  set: undefined,
  usual: { all: [], enforced: [] },
}

/**
 * Per log over all parts in order: whether an admitted request was charged to it, and can be returned. Shadow limits that
 * had no room were not, nor parts that were decided without the store; nor were any for a request that was admitted
 * before, and whether shadow limits had room then nobody knows.
 */
export function chargedLogs(
  parts: readonly Part[],
  decision: Decision,
  { repeats, debits }: ConsumeOutcome,
): readonly boolean[] {
  const isRepeat = repeats !== undefined
  if (!isRepeat && (debits !== undefined || !haveAllRoom(decision))) {
    return partly(parts, decision, debits)
  }
  const which = isRepeat ? 'enforced' : 'all'
  return parts.length === 1 ? usual(parts[0]!.set)[which] : parts.flatMap(({ set }) => usual(set)[which])
}

/** Runs for each admitted request, and a loop is faster than a callback. */
function haveAllRoom({ limits }: Decision): boolean {
  for (let i = 0; i < limits.length; i++) if (!limits[i]!.allowed) return false
  return true
}

function usual(set: LimitSet): Usual {
  if (last.set === set) return last.usual
  let known = usualOf.get(set)
  if (known === undefined) {
    known = {
      all: set.logs.map(isCharged),
      enforced: set.logs.map((log) => isCharged(log) && !log.shadow),
    }
    usualOf.set(set, known)
  }
  last = { set, usual: known }
  return known
}

function partly(
  parts: readonly Part[],
  { limits }: Decision,
  debits: readonly Debit[] | undefined,
): readonly boolean[] {
  let first = 0
  return parts.flatMap(({ set }, part) => {
    const before = first
    first += set.limits.length
    const { source = 'store', costs } = debits?.[part] ?? {}
    return set.logs.map((log) => {
      const hasRoom = log.serves.every((limit) => limits[before + limit]!.allowed)
      return isCounted(source) && isCharged(log) && hasRoom && costs?.[log.serves[0]!] !== 0
    })
  })
}

function isCharged({ role }: Log): boolean {
  return role === 'count'
}
