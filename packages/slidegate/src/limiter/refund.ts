// Remembers the charge behind a decision, and refunds it.
import { type Decision, isCounted, type LimitDecision, type Source } from '../decision.ts'
import { isObject, SlidegateError, StoreUnavailableError, show } from '../errors.ts'
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
} from '../stores/store.ts'
import { areKept, areWhole, NAMELESS, parseUnits } from './request.ts'

/** The charge of an admitted request. Refunds use this instead of the decision's fields. */
export interface Charge {
  readonly limiter: object
  readonly parts: readonly Part[]
  readonly names: Named
  readonly cost: number
  readonly atMs: number
  readonly source: Source
  /** If set, used instead of `atMs` and `source`; see {@link ConsumeOutcome.debits}. */
  readonly debits?: readonly Debit[] | undefined
  /** For each log, across all parts: whether it was charged. */
  readonly charged: readonly boolean[]
  /** Units that can still be refunded. */
  left: number
  askedAtMs?: number
}

/** Data shared by all charges that a limiter's fast path makes. */
export interface FastPathCharges {
  readonly limiter: object
  readonly set: LimitSet
  readonly encoding: KeyEncoding
}

/** A charge from the fast path. */
interface FastCharge {
  readonly of: FastPathCharges
  readonly key: unknown
  readonly cost: number
  readonly atMs: number
}

/** The charges of all requests with the same op and outcome. */
export interface SharedCharge {
  readonly limiter: object
  readonly op: Pick<ConsumeOp, 'parts' | 'cost' | keyof Named>
  readonly outcome: Pick<ConsumeOutcome, 'source' | 'atMs' | 'repeats' | 'debits' | 'overrides'>
}

/** Becomes a {@link Charge} when it's read, which is rare. */
type UnreadCharge = FastCharge | SharedCharge

class Returned {
  constructor(decision: object) {
    // biome-ignore lint/correctness/noConstructorReturn: this returns the object that gets the private field below
    return decision
  }
}

// Stores the charge in a private field of the decision, which otherwise stays plain data. Other code can't forge a charge. A
// WeakMap would do the same, but cost many times as much as the decision itself.
class Charged extends Returned {
  #charge: Charge | UnreadCharge

  constructor(decision: Decision, charge: Charge | UnreadCharge) {
    super(decision)
    this.#charge = charge
  }

  static chargeOf(decision: object): Charge | undefined {
    if (!(#charge in decision)) return undefined
    const charge = decision.#charge
    if ('left' in charge) return charge
    const made = read(charge)
    decision.#charge = made
    return made
  }
}

/** @param limits the decision's limits, if a shadow limit had no room */
function read(charge: UnreadCharge, limits?: Decision['limits']): Charge {
  if ('op' in charge) return chargeBy(charge, limits)
  const { of, key, cost, atMs } = charge
  const parts = [{ key: of.encoding.key(key), set: of.set }]
  return chargeBy({ limiter: of.limiter, op: { parts, cost }, outcome: { source: 'store', atMs } }, limits)
}

export function remember(decision: Decision, charge: UnreadCharge): void {
  // Shadow limits without room weren't charged. They are read at once, because the caller may change the decision.
  const { limits } = decision
  new Charged(decision, limits.every(hadRoom) ? charge : read(charge, limits))
}

function hadRoom({ allowed }: LimitDecision): boolean {
  return allowed
}

/** Returns the charge behind a decision. `undefined` for a denied or peeked decision, a copy, or any other value. */
export function chargeOf(decision: unknown): Charge | undefined {
  return isObject(decision) ? Charged.chargeOf(decision) : undefined
}

function chargeBy({ limiter, op, outcome }: SharedCharge, limits?: Decision['limits']): Charge {
  const { parts, requestId, mayRepeat } = op
  const { debits, source, atMs, repeats: cost = op.cost } = outcome
  const wasCounted = debits === undefined ? isCounted(source) : debits.some((each) => isCounted(each.source))
  const names = areKept(parts) ? { requestId, mayRepeat } : NAMELESS
  const charged = logsCharged(parts, outcome, limits)
  return { limiter, parts, names, cost, atMs, source, debits, charged, left: wasCounted ? cost : 0 }
}

/** Returns which logs the store charged. Shadow limits without room weren't charged. */
function logsCharged(
  parts: readonly Part[],
  { repeats, debits, overrides }: SharedCharge['outcome'],
  limits?: Decision['limits'],
): readonly boolean[] {
  let first = 0
  return partsInForce(parts, overrides).flatMap(({ set }, part) => {
    const before = first
    first += set.limits.length
    const { source = 'store', costs } = debits?.[part] ?? {}
    return set.logs.map(({ role, shadow, serves }) => {
      if (role !== 'count') return false
      if (repeats !== undefined) return !shadow
      const hasRoom = limits === undefined || serves.every((limit) => limits[before + limit]!.allowed)
      return isCounted(source) && hasRoom && costs?.[serves[0]!] !== 0
    })
  })
}

/** Returns the fields that an op needs if the charge wasn't made by the store. */
export function chargedBy({ source, debits }: Charge): Pick<RefundOp, 'source' | 'debits'> {
  return { ...(source === 'fallback' && { source }), ...(debits !== undefined && { debits }) }
}

/** Whether a failed op never left the process, and so had no effect. */
export function isUnsent(error: unknown): boolean {
  return error instanceof StoreUnavailableError && (error.reason === 'down' || error.reason === 'overload')
}

/** Returns a decision's charge if it can be refunded. `keys` are the caller's keys in their stored form. */
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
    const what = isDenied ? 'a denial' : 'from another limiter, or a copy'
    throw invalid(`the decision is ${what}; pass an allowed one from consume()`, decision)
  }
  const { parts, cost } = charge
  const isSame = keys.length === parts.length && keys.every((key, i) => key === parts[i]!.key)
  if (!isSame) throw invalid(`the decision belongs to a different key than ${show(keys[0])}`, keys[0])
  if (parseUnits(units, 'invalid_refund') > cost) {
    throw invalid(`cannot refund ${units} units: only ${cost} were charged`, units)
  }
  if (areWhole(parts) && units !== cost) {
    const why = 'a limit stores each request separately, so refund all units'
    throw invalid(`cannot refund ${units} of ${cost} units: ${why}`, units)
  }
  return charge
}

/** Refunds up to `units`. Resolves to how many were refunded: the minimum over all enforced limits. */
export async function returnUnits(ask: Ask, charge: Charge, units: number): Promise<number> {
  // Subtracts the units before the call, so that concurrent calls don't refund the same units twice.
  const asked = Math.min(units, charge.left)
  if (asked === 0) return 0
  charge.left -= asked
  const { parts, atMs, names, charged } = charge
  const op: RefundOp = { type: 'refund', parts, units: asked, atMs, charged, ...names, ...chargedBy(charge) }
  try {
    const { returned } = await ask(op)
    charge.left += asked - Math.max(...returned)
    const logs = parts.flatMap(({ set }) => set.logs)
    const counting = returned.filter((_, i) => charged[i] && !logs[i]!.shadow)
    const counted = returned.filter((_, i) => logs[i]!.role === 'count')
    return Math.min(...(counting.length > 0 ? counting : counted))
  } catch (error) {
    // An op that was never sent can be retried, unlike one that may have had an effect.
    if (isUnsent(error)) charge.left += asked
    throw error
  }
}
