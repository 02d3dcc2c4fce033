// Remembers the charge of a decision, and returns it.
import { type Decision, isCounted, type Source } from '../decision.ts'
import { SlidegateError, StoreUnavailableError, show } from '../errors.ts'
import type { KeyEncoding } from '../key.ts'
import type { LimitSet } from '../limits/limit-set.ts'
import type { Ask } from '../stores/call.ts'
import {
  type ConsumeOp,
  type ConsumeOutcome,
  type Debit,
  type Named,
  type Part,
  partsInForce,
  type RefundOp,
  type RefundOutcome,
} from '../stores/store.ts'
import { areKept, areWhole, NAMELESS, parseUnits } from './request.ts'

/** The charge of an admitted request. Refunds use it, not the fields of the decision. */
export interface Charge {
  /** Identifies the limiter. */
  readonly limiter: object
  readonly parts: readonly Part[]
  /** The name of the request in logs that keep entries. */
  readonly names: Named
  readonly cost: number
  readonly atMs: number
  readonly source: Source
  /** See {@link ConsumeOutcome.debits}: in place of `atMs` and `source`. */
  readonly debits?: readonly Debit[] | undefined
  /** Per log, over all parts in order: whether it was charged. Left out if all logs were that limits read. */
  readonly charged?: readonly boolean[] | undefined
  /** Units not yet returned. */
  left: number
  /** When a waiting request was sent, by `performance.now()`, so before the charge. */
  askedAtMs?: number
}

/** Shared by the charges of a limiter's fast path. */
export interface FastPathCharges {
  readonly limiter: object
  readonly set: LimitSet
  readonly encoding: KeyEncoding
}

/** A charge as the fast path keeps it. It becomes a {@link Charge} when it is first read: most never are. */
interface FastCharge {
  readonly of: FastPathCharges
  /** As given. */
  readonly key: unknown
  readonly cost: number
  readonly atMs: number
}

function chargeFrom({ of, key, cost, atMs }: FastCharge): Charge {
  const { limiter, set, encoding } = of
  const parts = [{ key: encoding.key(key), set }]
  return { limiter, parts, names: NAMELESS, cost, atMs, source: 'store', left: cost }
}

class Returned {
  constructor(decision: object) {
    // biome-ignore lint/correctness/noConstructorReturn: the private field below is put on what this returns
    return decision
  }
}

// A private field on an object that stays plain data in every other respect: it goes wherever the decision goes, and no other
// code can make one. A WeakMap would do the same, at many times the cost of the decision.
class Charged extends Returned {
  #charge: Charge | FastCharge

  constructor(decision: Decision, charge: Charge | FastCharge) {
    super(decision)
    this.#charge = charge
  }

  static chargeOf(decision: object): Charge | undefined {
    if (!(#charge in decision)) return undefined
    const charge = decision.#charge
    if (!('of' in charge)) return charge
    const made = chargeFrom(charge)
    decision.#charge = made
    return made
  }
}

/** Makes a decision remember its charge. */
export function remember(decision: Decision, charge: Charge | FastCharge): void {
  new Charged(decision, charge)
}

/** `undefined` for a denied or peeked decision, a copy, or anything else. */
export function chargeOf(decision: unknown): Charge | undefined {
  return typeof decision === 'object' && decision !== null ? Charged.chargeOf(decision) : undefined
}

/** The charge of an admitted request, by the outcome of its op. */
export function chargeBy(
  limiter: object,
  { parts, requestId, mayRepeat }: ConsumeOp,
  outcome: ConsumeOutcome,
  decision: Decision,
): Charge {
  const { cost, atMs, source } = decision
  const { debits } = outcome
  const wasCounted = debits === undefined ? isCounted(source) : debits.some((each) => isCounted(each.source))
  const names = areKept(parts) ? { requestId, mayRepeat } : NAMELESS
  const charged = chargedLogs(partsInForce(parts, outcome.overrides), decision, outcome)
  return { limiter, parts, names, cost, atMs, source, debits, charged, left: wasCounted ? cost : 0 }
}

/**
 * Shadow limits without room weren't charged, nor were parts that were decided without the store. A request that was admitted
 * before is charged to no shadow limit: nothing tells whether it had room then.
 *
 * @param parts by the numbers that were in force
 */
function chargedLogs(
  parts: readonly Part[],
  { limits }: Decision,
  { repeats, debits }: ConsumeOutcome,
): readonly boolean[] | undefined {
  const isRepeat = repeats !== undefined
  if (!isRepeat && debits === undefined && haveAllRoom(limits)) return undefined
  let first = 0
  return parts.flatMap(({ set }, part) => {
    const before = first
    first += set.limits.length
    const { source = 'store', costs } = debits?.[part] ?? {}
    return set.logs.map(({ role, shadow, serves }) => {
      if (role !== 'count') return false
      if (isRepeat) return !shadow
      const hasRoom = serves.every((limit) => limits[before + limit]!.allowed)
      return isCounted(source) && hasRoom && costs?.[serves[0]!] !== 0
    })
  })
}

/** Runs for each admitted request: a loop is faster than a callback. */
function haveAllRoom(limits: Decision['limits']): boolean {
  for (let i = 0; i < limits.length; i++) if (!limits[i]!.allowed) return false
  return true
}

/** Per log, over all parts in order: whether it was charged. */
export function logsCharged({ parts, charged }: Charge): readonly boolean[] {
  return charged ?? parts.flatMap(({ set }) => set.logs.map(({ role }) => role === 'count'))
}

/** The fields of an op that say who charged it, if not the store. */
export function chargedBy({ source, debits }: Charge): Pick<RefundOp, 'source' | 'debits'> {
  return { ...(source === 'fallback' && { source }), ...(debits !== undefined && { debits }) }
}

/** Whether an op that failed with this certainly wasn't done: it never left the process. */
export function isUnsent(error: unknown): boolean {
  return error instanceof StoreUnavailableError && (error.reason === 'down' || error.reason === 'overload')
}

/**
 * The charge of a decision, of which these units can be returned.
 *
 * @param keys the stored keys that the caller names
 * @throws {SlidegateError} `invalid_refund`
 */
export function returnable(
  limiter: object,
  keys: readonly string[],
  decision: unknown,
  units: unknown,
): Charge {
  const charge = chargeOf(decision)
  const invalid = (message: string, value: unknown) => new SlidegateError('invalid_refund', message, value)
  if (charge === undefined || charge.limiter !== limiter) {
    const isDenied = (decision as { allowed?: unknown } | undefined)?.allowed === false
    const what = isDenied ? 'a denied decision, which charged nothing' : 'not one of this limiter'
    throw invalid(`the decision is ${what}; it must be one that consume() allowed`, decision)
  }
  const { parts, cost } = charge
  const isSame = keys.length === parts.length && keys.every((key, i) => key === parts[i]!.key)
  if (!isSame) throw invalid(`the decision was made for another key than ${show(keys[0])}`, keys[0])
  if (parseUnits(units, 'invalid_refund') > cost) {
    throw invalid(`${units} units are more than the ${cost} that were charged`, units)
  }
  if (areWhole(parts) && units !== cost) {
    throw invalid(
      `${units} of ${cost} units cannot be returned: a limit keeps requests one by one, and takes back the whole`,
      units,
    )
  }
  return charge
}

/** Returns units that are left. Resolves to how many were returned, the least over the enforced limits. */
export async function returnUnits(ask: Ask, charge: Charge, units: number): Promise<number> {
  // Taken before the call: concurrent refunds don't return a decision twice.
  const asked = Math.min(units, charge.left)
  if (asked === 0) return 0
  charge.left -= asked
  const { parts, atMs, names } = charge
  const charged = logsCharged(charge)
  const op: RefundOp = { type: 'refund', parts, units: asked, atMs, charged, ...names, ...chargedBy(charge) }
  try {
    const { returned } = (await ask(op)) as RefundOutcome
    charge.left += asked - Math.max(...returned)
    const logs = parts.flatMap(({ set }) => set.logs)
    const counting = returned.filter((_, i) => charged[i] && !logs[i]!.shadow)
    const counted = returned.filter((_, i) => logs[i]!.role === 'count')
    return Math.min(...(counting.length > 0 ? counting : counted))
  } catch (error) {
    // An op that was never sent can be retried. One that may have been done can't.
    if (isUnsent(error)) charge.left += asked
    throw error
  }
}
