import { SlidegateError, StoreUnavailableError, type StoreUnavailableReason, show } from '../errors.ts'
import type { Op, Outcome, RefundOp, RefundOutcome } from '../stores/store.ts'
import { areWhole } from './names.ts'
import { type Origin, originOf } from './origin.ts'
import { parseUnits } from './units.ts'

/** Reasons for which an op has not left this process. */
const UNSENT: readonly StoreUnavailableReason[] = ['down', 'overload']

/** Whether what has failed so was certainly not done. */
export function isUnsent(error: unknown): boolean {
  return error instanceof StoreUnavailableError && UNSENT.includes(error.reason)
}

/**
 * The origin of a decision that may be returned in part or as a whole.
 *
 * @param keys for which it is said to have been made, as stored
 * @throws {SlidegateError} `invalid_refund`
 */
export function returnable(
  limiter: object,
  keys: readonly string[],
  decision: unknown,
  units: unknown,
): Origin {
  const origin = originOf(decision)
  const invalid = (message: string, value: unknown) => new SlidegateError('invalid_refund', message, value)
  if (origin === undefined || origin.limiter !== limiter) {
    const isDenied = (decision as { allowed?: unknown } | undefined)?.allowed === false
    const what = isDenied ? 'a denied decision, which charged nothing' : 'not one of this limiter'
    throw invalid(`the decision is ${what}; it must be one that consume() allowed`, decision)
  }
  const isSame = keys.length === origin.parts.length && keys.every((key, i) => key === origin.parts[i]!.key)
  if (!isSame) throw invalid(`the decision was made for another key than ${show(keys[0])}`, keys[0])
  if (parseUnits(units, 'invalid_refund') > origin.cost) {
    throw invalid(`${units} units are more than the ${origin.cost} that were charged`, units)
  }
  if (areWhole(origin.parts) && units !== origin.cost) {
    throw invalid(
      `${units} of ${origin.cost} units cannot be returned: a limit keeps requests one by one, and takes back the whole`,
      units,
    )
  }
  return origin
}

/** Returns so many units, as far as they are left; answers how many were, the least over the enforced limits. */
export async function returnTo(
  apply: (op: Op) => Promise<Outcome>,
  origin: Origin,
  units: number,
): Promise<number> {
  // Taken before asking: two refunds at once do not return a decision twice.
  const asked = Math.min(units, origin.left)
  if (asked === 0) return 0
  origin.left -= asked
  const { parts, charged, atMs, source, debits, names } = origin
  const op: RefundOp = { type: 'refund', parts, units: asked, atMs, charged, ...names }
  const { returned } = await ask(apply, origin, {
    ...op,
    ...(source === 'fallback' && { source }),
    ...(debits !== undefined && { debits }),
  })
  origin.left += asked - Math.max(...returned)
  const logs = parts.flatMap(({ set }) => set.logs)
  const counting = returned.filter((_, i) => charged[i] && !logs[i]!.shadow)
  const counted = returned.filter((_, i) => logs[i]!.role === 'count')
  return Math.min(...(counting.length > 0 ? counting : counted))
}

async function ask(
  apply: (op: Op) => Promise<Outcome>,
  origin: Origin,
  op: RefundOp,
): Promise<RefundOutcome> {
  try {
    return (await apply(op)) as RefundOutcome
  } catch (error) {
    // What was certainly not done may be tried again; what perhaps was may not.
    if (isUnsent(error)) origin.left += op.units
    throw error
  }
}
