import type { Decision } from '../decision.ts'
import { invalidOption, SlidegateError, show } from '../errors.ts'
import type { AnyKey } from '../key.ts'
import { type ExtraLog, withLog } from '../limits/limit-set.ts'
import { reservationLog } from '../limits/reservations.ts'
import { type Duration, parseWindow } from '../runtime/duration.ts'
import { fromBase64url, randomText, toBase64url } from '../runtime/platform.ts'
import type { ConsumeOp, Op, Outcome, Part, SettleOp, SettleOutcome } from '../stores/store.ts'
import { areKept } from './names.ts'
import { originOf } from './origin.ts'
import { isUnsent } from './refund.ts'
import { parseUnits } from './units.ts'

/** What becomes of a reservation when it is settled. */
export interface Settlement {
  /** Units returned, the least over the enforced limits: fewer than were too many where a log no longer holds them. */
  readonly returned: number
  /** Units charged beyond the estimate. */
  readonly added: number
}

/**
 * What `reserve` resolves to. Allowed, its estimate is charged, and stays so unless it is settled or cancelled; once, by
 * whoever has it or its token. (Where the decision was made without the store, nobody can tell twice from once but the
 * reservation itself: by its token each settlement charges.)
 */
export interface Reservation {
  readonly decision: Decision
  readonly allowed: boolean
  /** Settles it in another process, by `limiter.settle(token, actual)`; '' where it was denied. It holds the key, in plain. */
  readonly token: string
  /**
   * It turned out to be so many units, an integer from 0: what was too much is returned, what is more is charged, beyond
   * the limits if need be.
   *
   * Rejects with `invalid_reservation` where it was denied, settled or cancelled before, or can be settled no longer; with
   * a `StoreUnavailableError` where the store gave no answer: then it may have been.
   */
  settle(actual: number): Promise<Settlement>
  /** The same as `settle(0)`. */
  cancel(): Promise<Settlement>
}

/** What a token says. */
interface Claim {
  readonly key: AnyKey
  readonly units: number
  /**
   * Its name in the store, which no other has, and which tells another number of units apart; '' where the store
   * keeps no reservation, for it was not the one that decided.
   */
  readonly name: string
  /** Per part, the logs that were charged. */
  readonly charged: readonly (readonly string[])[]
  /** Per part, when. */
  readonly instants: readonly number[]
}

const VERSION = 1

/** Keys of a request, and logs of each, that a token names at most: it may have been made by anybody. */
const MOST_PARTS = 16
const MOST_LOGS = 1024

function claimOf(key: AnyKey, name: string, decision: Decision): Claim {
  const origin = originOf(decision)
  if (origin === undefined || origin.left === 0) {
    return { key, units: decision.cost, name: '', charged: [], instants: [] }
  }
  let place = 0
  const charged = origin.parts.map(({ set }) =>
    set.logs.filter(() => origin.charged[place++] === true).map((log) => log.name),
  )
  // Who has decided any of it in place of the store keeps no reservations.
  const isKept = origin.source === 'store'
  // The store settles it: a refund would return it once more.
  if (isKept) origin.left = 0
  const instants = origin.parts.map((_, i) => origin.debits?.[i]?.atMs ?? origin.atMs)
  return { key, units: decision.cost, name: isKept ? name : '', charged, instants }
}

function tokenOf(limiter: string, { key, units, name, charged, instants }: Claim): string {
  const words = [VERSION, limiter, key, units, name, charged, instants]
  return toBase64url(JSON.stringify(words))
}

/** @throws {SlidegateError} `invalid_reservation` for what is no token of this limiter */
function parseToken(limiter: string, token: unknown): Claim {
  const words = typeof token === 'string' ? wordsOf(token) : undefined
  if (words?.length !== 7 || words[0] !== VERSION) {
    throw invalid(`the token is ${show(token)}; it must be one of reserve()`, token)
  }
  const [, of, key, units, name, charged, instants] = words
  if (of !== limiter)
    throw invalid(`the token is one of the limiter ${show(of)}, not of ${show(limiter)}`, token)
  const isSound =
    Number.isSafeInteger(units) &&
    typeof name === 'string' &&
    // What the store knows is the name, so that the units are what it says.
    (name === '' || name.endsWith(`.${units}`)) &&
    Array.isArray(charged) &&
    charged.length <= MOST_PARTS &&
    charged.every((logs) => Array.isArray(logs) && logs.length <= MOST_LOGS) &&
    Array.isArray(instants) &&
    instants.length <= MOST_PARTS &&
    instants.every((atMs) => Number.isSafeInteger(atMs))
  if (!isSound) throw invalid(`the token is ${show(token)}; it must be one of reserve()`, token)
  return { key: key as AnyKey, units: units as number, name, charged, instants }
}

function wordsOf(token: string): unknown[] | undefined {
  try {
    const words: unknown = JSON.parse(fromBase64url(token))
    return Array.isArray(words) ? words : undefined
  } catch {
    return undefined
  }
}

function invalid(message: string, value: unknown): SlidegateError {
  return new SlidegateError('invalid_reservation', message, value)
}

/** What a limiter has reserved, and is to settle. */
export class Reservations {
  readonly #limiter: string
  readonly #log: ExtraLog
  readonly #apply: (op: Op) => Promise<Outcome>

  /**
   * @param ttl for how long a reservation can be settled
   * @param apply asks the limiter's store
   * @throws {SlidegateError} `invalid_window`
   */
  constructor(limiter: string, ttl: Duration, apply: (op: Op) => Promise<Outcome>) {
    this.#limiter = limiter
    this.#log = reservationLog(parseWindow(ttl, 'reservationTtl'))
    this.#apply = apply
  }

  /** The parts with the logs in which reservations are kept. */
  partsWith(parts: readonly Part[]): readonly Part[] {
    return parts.map(({ key, set }) => ({ key, set: withLog(set, this.#log) }))
  }

  /** @throws {SlidegateError} `invalid_cost`, and `invalid_option` where a limit keeps requests one by one */
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
      // The store tells twice from once, but not where it has not counted the estimate.
      if (isOver) throw invalid('the reservation was denied, settled or cancelled before', actual)
      const op = settleOp(parts, claim, actual)
      isOver = claim.name === ''
      try {
        return await this.#settle(op, claim)
      } catch (error) {
        // What has not left this process may be tried again.
        if (isUnsent(error)) isOver = false
        throw error
      }
    }
    const token = allowed ? tokenOf(this.#limiter, claim) : ''
    return { decision, allowed, token, settle, cancel: () => settle(0) }
  }

  /** The key that was reserved for. @throws {SlidegateError} `invalid_reservation` */
  keyOf(token: string): AnyKey {
    return parseToken(this.#limiter, token).key
  }

  /** @param parts of the token's key */
  async settle(parts: readonly Part[], token: string, actual: number): Promise<Settlement> {
    const claim = parseToken(this.#limiter, token)
    return this.#settle(settleOp(this.partsWith(parts), claim, actual), claim)
  }

  async #settle(op: SettleOp, claim: Claim): Promise<Settlement> {
    const { parts, actual, units } = op
    if (claim.name === '') {
      // Perhaps nobody has counted the estimate. What somebody has stays charged.
      const added = Math.max(0, actual - (claim.charged.length > 0 ? units : 0))
      if (added > 0) await this.#apply({ type: 'charge', parts, units: added })
      return { returned: 0, added }
    }
    const { settled, returned } = (await this.#apply(op)) as SettleOutcome
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
