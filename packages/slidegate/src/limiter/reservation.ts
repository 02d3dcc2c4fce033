// Reservations: estimates that are charged first and settled once, by token.
import type { Decision } from '../decision.ts'
import { invalidOption, SlidegateError, show } from '../errors.ts'
import type { AnyKey } from '../key.ts'
import { reservationLog } from '../limits/concurrency.ts'
import { type Log, withLog } from '../limits/limit-set.ts'
import { type Duration, parseWindow } from '../runtime/duration.ts'
import { fromBase64url, randomText, toBase64url } from '../runtime/platform.ts'
import type { Ask } from '../stores/call.ts'
import type { ConsumeOp, Part, SettleOp } from '../stores/store.ts'
import { chargeOf, isUnsent } from './refund.ts'
import { areKept, parseUnits } from './request.ts'

/** The result of settling a reservation. */
export interface Settlement {
  /** Units refunded: the minimum over all enforced limits, excluding units that have left the window. */
  readonly returned: number
  /** Units charged beyond the estimate. */
  readonly added: number
}

/**
 * An estimate, charged if it was allowed. Settle or cancel it once.
 *
 * If the decision was made without the store, only this object records whether the reservation was settled. In that
 * case, each settlement by token charges again.
 */
export interface Reservation {
  readonly decision: Decision
  readonly allowed: boolean
  /** Lets any process call `limiter.settle(token, actual)`. Contains the key in plain text. `''` if denied. */
  readonly token: string
  /**
   * Replaces the estimate with the actual units, 0 or more.
   *
   * Refunds unused units, or charges more units, even beyond the limits. Rejects with `invalid_reservation` if the reservation
   * was denied, expired, settled or canceled. After a `StoreUnavailableError`, the reservation may have been settled.
   */
  settle(actual: number): Promise<Settlement>
  /** The same as `settle(0)`. */
  cancel(): Promise<Settlement>
}

/** The content of a token. */
export interface Claim {
  readonly key: AnyKey
  readonly units: number
  /** The reservation's unique name in the store, which ends with the units. `''` if it was decided without the store. */
  readonly name: string
  readonly charged: readonly (readonly string[])[]
  readonly instants: readonly number[]
}

const VERSION = 1

const MOST_PARTS = 16
const MOST_LOGS = 1024

function claimOf(key: AnyKey, name: string, decision: Decision): Claim {
  const units = decision.cost
  const charge = chargeOf(decision)
  if (charge === undefined || charge.left === 0) return { key, units, name: '', charged: [], instants: [] }
  const { parts, debits, source, atMs, charged: isCharged } = charge
  let place = 0
  const charged = parts.map(({ set }) => set.logs.filter(() => isCharged[place++]).map((log) => log.name))
  const instants = parts.map((_, i) => debits?.[i]?.atMs ?? atMs)
  // Fallbacks don't store reservations.
  const isStored = source === 'store'
  // From now on, only a settlement may refund the units. Otherwise, they could be refunded twice.
  if (isStored) charge.left = 0
  return { key, units, name: isStored ? name : '', charged, instants }
}

function tokenOf(limiter: string, { key, units, name, charged, instants }: Claim): string {
  const words = [VERSION, limiter, key, units, name, charged, instants]
  return toBase64url(JSON.stringify(words))
}

export function parseToken(limiter: string, token: unknown): Claim {
  const words = wordsOf(token)
  const [version, of, key, units, name, charged, instants] = words
  const isToken =
    words.length === 7 &&
    version === VERSION &&
    Number.isSafeInteger(units) &&
    typeof name === 'string' &&
    // The store has only the name, so the token's units must match those in the name.
    (name === '' || name.endsWith(`.${units}`)) &&
    isList(charged, MOST_PARTS, (logs) => isList(logs, MOST_LOGS, () => true)) &&
    isList(instants, MOST_PARTS, Number.isSafeInteger)
  if (!isToken) throw invalid(`the token is ${show(token)}; pass the token of a reservation`, token)
  if (of !== limiter) {
    throw invalid(`the token belongs to the limiter ${show(of)}, not to ${show(limiter)}`, token)
  }
  return { key, units, name, charged, instants } as Claim
}

function isList(value: unknown, most: number, isItem: (item: unknown) => boolean): boolean {
  return Array.isArray(value) && value.length <= most && value.every(isItem)
}

function wordsOf(token: unknown): readonly unknown[] {
  try {
    const words: unknown = JSON.parse(fromBase64url(token as string))
    return Array.isArray(words) ? words : []
  } catch {
    return []
  }
}

function invalid(message: string, value: unknown): SlidegateError {
  return new SlidegateError('invalid_reservation', message, value)
}

export class Reservations {
  readonly #limiter: string
  readonly #log: Log
  readonly #ask: Ask

  constructor(limiter: string, ttl: Duration, ask: Ask) {
    this.#limiter = limiter
    this.#log = reservationLog(parseWindow(ttl, 'reservationTtl'))
    this.#ask = ask
  }

  partsWith(parts: readonly Part[]): readonly Part[] {
    return parts.map(({ key, set }) => ({ key, set: withLog(set, this.#log) }))
  }

  opFor(parts: readonly Part[], estimate: number): ConsumeOp {
    const cost = parseUnits(estimate, 'invalid_cost')
    if (areKept(parts)) {
      const what = `a limit in ${show(this.#limiter)} stores each request separately`
      throw invalidOption(`${what}; reserve() only supports limits that store totals`, this.#limiter)
    }
    const reservation = `${randomText(12)}.${cost}`
    return { type: 'consume', parts: this.partsWith(parts), cost, count: 1, leaseMs: 0, reservation }
  }

  of(key: AnyKey, { parts, reservation }: ConsumeOp, decision: Decision): Reservation {
    const { allowed } = decision
    const claim = claimOf(key, reservation!, decision)
    let isOver = !allowed
    const settle = async (actual: number): Promise<Settlement> => {
      if (isOver) throw invalid('the reservation was denied, settled or canceled', actual)
      const op = settleOp(parts, claim, actual)
      // The store allows only one settlement. This object tracks reservations that aren't in the store.
      isOver = claim.name === ''
      try {
        return await this.#settle(op, claim)
      } catch (error) {
        if (isUnsent(error)) isOver = false
        throw error
      }
    }
    const token = allowed ? tokenOf(this.#limiter, claim) : ''
    return { decision, allowed, token, settle, cancel: () => settle(0) }
  }

  async settle(parts: readonly Part[], claim: Claim, actual: number): Promise<Settlement> {
    return this.#settle(settleOp(this.partsWith(parts), claim, actual), claim)
  }

  async #settle(op: SettleOp, claim: Claim): Promise<Settlement> {
    const { parts, actual, units } = op
    if (claim.name === '') {
      // If a fallback charged the estimate, it stays charged.
      const added = Math.max(0, actual - (claim.charged.length > 0 ? units : 0))
      if (added > 0) await this.#ask({ type: 'charge', parts, units: added })
      return { returned: 0, added }
    }
    const { settled, returned } = await this.#ask(op)
    if (!settled) throw invalid('the reservation is already settled, canceled or expired', claim.name)
    const logs = parts.flatMap(({ set }) => set.logs)
    const counting = returned.filter((_, i) => op.charged[i] && !logs[i]!.shadow)
    return { returned: counting.length === 0 ? 0 : Math.min(...counting), added: Math.max(0, actual - units) }
  }
}

function settleOp(parts: readonly Part[], claim: Claim, actual: unknown): SettleOp {
  const { units, name, charged, instants } = claim
  return {
    type: 'settle',
    parts,
    reservation: name,
    units,
    instants: parts.map((_, i) => instants[i] ?? 0),
    actual: parseUnits(actual, 'invalid_cost', 0),
    charged: parts.flatMap(({ set }, i) =>
      set.logs.map(({ name: log, role }) => role === 'count' && charged[i]?.includes(log) === true),
    ),
  }
}
