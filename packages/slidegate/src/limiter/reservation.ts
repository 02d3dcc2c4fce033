// Reservations: an estimate is charged, and settled once, by its token.
import type { Decision } from '../decision.ts'
import { invalidOption, SlidegateError, show } from '../errors.ts'
import type { AnyKey } from '../key.ts'
import { type Log, withLog } from '../limits/limit-set.ts'
import { reservationLog } from '../limits/reservations.ts'
import { type Duration, parseWindow } from '../runtime/duration.ts'
import { fromBase64url, randomText, toBase64url } from '../runtime/platform.ts'
import type { Ask } from '../stores/call.ts'
import type { ConsumeOp, Part, SettleOp, SettleOutcome } from '../stores/store.ts'
import { chargeOf, isUnsent, logsCharged } from './refund.ts'
import { areKept, parseUnits } from './request.ts'

/** The effect of settling a reservation. */
export interface Settlement {
  /** Units returned, the least over the enforced limits. Fewer if a log no longer holds them. */
  readonly returned: number
  /** Units charged beyond the estimate. */
  readonly added: number
}

/**
 * A charged estimate, if it was allowed, until it is settled or cancelled, once.
 *
 * If the decision was made without the store, only the reservation itself knows that it was settled: its token can be settled
 * again, and charges each time.
 */
export interface Reservation {
  readonly decision: Decision
  readonly allowed: boolean
  /** Settles it in any process, by `limiter.settle(token, actual)`. Holds the key in plain text; '' if it was denied. */
  readonly token: string
  /**
   * Replaces the estimate by the actual units, an integer from 0. Returns the rest, or charges more, beyond the limits if need
   * be.
   *
   * Rejects with `invalid_reservation` if it was denied, settled or cancelled before, or its time is over. After a
   * `StoreUnavailableError` it may be settled.
   */
  settle(actual: number): Promise<Settlement>
  /** The same as `settle(0)`. */
  cancel(): Promise<Settlement>
}

/** The content of a token. */
interface Claim {
  readonly key: AnyKey
  readonly units: number
  /** Its unique name in the store, ending with the units. '' if it was decided without the store. */
  readonly name: string
  /** Per part, the logs that were charged. */
  readonly charged: readonly (readonly string[])[]
  /** Per part, when. */
  readonly instants: readonly number[]
}

const VERSION = 1

/** The most keys in a token, and logs of each. Any caller can forge one. */
const MOST_PARTS = 16
const MOST_LOGS = 1024

function claimOf(key: AnyKey, name: string, decision: Decision): Claim {
  const units = decision.cost
  const charge = chargeOf(decision)
  if (charge === undefined || charge.left === 0) return { key, units, name: '', charged: [], instants: [] }
  const { parts, debits, source, atMs } = charge
  const isCharged = logsCharged(charge)
  let place = 0
  const charged = parts.map(({ set }) => set.logs.filter(() => isCharged[place++]).map((log) => log.name))
  const instants = parts.map((_, i) => debits?.[i]?.atMs ?? atMs)
  // A fallback keeps no reservations.
  const isStored = source === 'store'
  // The store settles it: a refund would return it once more.
  if (isStored) charge.left = 0
  return { key, units, name: isStored ? name : '', charged, instants }
}

function tokenOf(limiter: string, { key, units, name, charged, instants }: Claim): string {
  const words = [VERSION, limiter, key, units, name, charged, instants]
  return toBase64url(JSON.stringify(words))
}

/** @throws {SlidegateError} `invalid_reservation` unless it is a token of this limiter */
function parseToken(limiter: string, token: unknown): Claim {
  const words = wordsOf(token)
  const [version, of, key, units, name, charged, instants] = words
  const isToken =
    words.length === 7 &&
    version === VERSION &&
    Number.isSafeInteger(units) &&
    typeof name === 'string' &&
    // The store knows the name only, so the units must be those in it.
    (name === '' || name.endsWith(`.${units}`)) &&
    isList(charged, MOST_PARTS, (logs) => isList(logs, MOST_LOGS, () => true)) &&
    isList(instants, MOST_PARTS, Number.isSafeInteger)
  if (!isToken) throw invalid(`the token is ${show(token)}; it must be one of reserve()`, token)
  if (of !== limiter) {
    throw invalid(`the token is one of the limiter ${show(of)}, not of ${show(limiter)}`, token)
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

/** The reservations of a limiter. */
export class Reservations {
  readonly #limiter: string
  readonly #log: Log
  readonly #ask: Ask

  /**
   * @param ttl for how long a reservation can be settled
   * @throws {SlidegateError} `invalid_duration`
   */
  constructor(limiter: string, ttl: Duration, ask: Ask) {
    this.#limiter = limiter
    this.#log = reservationLog(parseWindow(ttl, 'reservationTtl'))
    this.#ask = ask
  }

  /** The parts with their logs of reservations. */
  partsWith(parts: readonly Part[]): readonly Part[] {
    return parts.map(({ key, set }) => ({ key, set: withLog(set, this.#log) }))
  }

  /** @throws {SlidegateError} `invalid_cost`; `invalid_option` if a limit keeps requests one by one */
  opFor(parts: readonly Part[], estimate: number): ConsumeOp {
    const cost = parseUnits(estimate, 'invalid_cost')
    if (areKept(parts)) {
      throw invalidOption(
        `a limit of ${show(this.#limiter)} keeps requests one by one; only those that keep sums can be reserved`,
        this.#limiter,
      )
    }
    const reservation = `${randomText(12)}.${cost}`
    return { type: 'consume', parts: this.partsWith(parts), cost, count: 1, leaseMs: 0, reservation }
  }

  of(key: AnyKey, { parts, reservation }: ConsumeOp, decision: Decision): Reservation {
    const { allowed } = decision
    const claim = claimOf(key, reservation!, decision)
    let isOver = !allowed
    const settle = async (actual: number): Promise<Settlement> => {
      if (isOver) throw invalid('the reservation was denied, settled or cancelled before', actual)
      const op = settleOp(parts, claim, actual)
      // The store allows one settlement. Of a reservation that it doesn't have, this one does.
      isOver = claim.name === ''
      try {
        return await this.#settle(op, claim)
      } catch (error) {
        // An op that was never sent can be retried.
        if (isUnsent(error)) isOver = false
        throw error
      }
    }
    const token = allowed ? tokenOf(this.#limiter, claim) : ''
    return { decision, allowed, token, settle, cancel: () => settle(0) }
  }

  /** The key of a token. @throws {SlidegateError} `invalid_reservation` */
  keyOf(token: string): AnyKey {
    return parseToken(this.#limiter, token).key
  }

  /** @param parts the parts of the token's key */
  async settle(parts: readonly Part[], token: string, actual: number): Promise<Settlement> {
    const claim = parseToken(this.#limiter, token)
    return this.#settle(settleOp(this.partsWith(parts), claim, actual), claim)
  }

  async #settle(op: SettleOp, claim: Claim): Promise<Settlement> {
    const { parts, actual, units } = op
    if (claim.name === '') {
      // The estimate may have been counted by a fallback. That stays charged.
      const added = Math.max(0, actual - (claim.charged.length > 0 ? units : 0))
      if (added > 0) await this.#ask({ type: 'charge', parts, units: added })
      return { returned: 0, added }
    }
    const { settled, returned } = (await this.#ask(op)) as SettleOutcome
    if (!settled) throw invalid('the reservation was settled or cancelled before, or too late', claim.name)
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
