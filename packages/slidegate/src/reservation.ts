import { randomBytes } from 'node:crypto'
import { type Decision, isCounted } from './decision.ts'
import { SlidegateError, show } from './errors.ts'
import type { AnyKey } from './key-limits.ts'
import { originOf } from './origin.ts'
import type { Part, SettleOp, SettleOutcome } from './stores/store.ts'
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
 * whoever has it or its token.
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
export interface Claim {
  readonly key: AnyKey
  readonly units: number
  /** Its name in the store; '' where the store knows nothing of it, for it gave no answer. */
  readonly name: string
  /** Per part, the logs that were charged. */
  readonly charged: readonly (readonly string[])[]
}

const VERSION = 1

/** A name that no other reservation has, and that tells another number of units apart. */
export function reservationName(units: number): string {
  return `${randomBytes(12).toString('base64url')}.${units}`
}

export function claimOf(key: AnyKey, name: string, decision: Decision): Claim {
  const origin = originOf(decision)
  const isKnown = origin !== undefined && isCounted(origin.source) && origin.source !== 'fallback'
  if (!isKnown) return { key, units: decision.cost, name: '', charged: [] }
  let place = 0
  const charged = origin.parts.map(({ set }) =>
    set.logs.filter(() => origin.charged[place++] === true).map((log) => log.name),
  )
  return { key, units: decision.cost, name, charged }
}

export function tokenOf(limiter: string, { key, units, name, charged }: Claim): string {
  return Buffer.from(JSON.stringify([VERSION, limiter, key, units, name, charged])).toString('base64url')
}

/** @throws {SlidegateError} `invalid_reservation` for what is no token of this limiter */
export function parseToken(limiter: string, token: unknown): Claim {
  const words = typeof token === 'string' ? wordsOf(token) : undefined
  if (words?.length !== 6 || words[0] !== VERSION) {
    throw invalid(`the token is ${show(token)}; it must be one of reserve()`, token)
  }
  const [, of, key, units, name, charged] = words
  if (of !== limiter)
    throw invalid(`the token is one of the limiter ${show(of)}, not of ${show(limiter)}`, token)
  const isSound =
    Number.isSafeInteger(units) &&
    typeof name === 'string' &&
    Array.isArray(charged) &&
    charged.every((logs) => Array.isArray(logs))
  if (!isSound) throw invalid(`the token is ${show(token)}; it must be one of reserve()`, token)
  return { key: key as AnyKey, units: units as number, name, charged }
}

function wordsOf(token: string): unknown[] | undefined {
  try {
    const words: unknown = JSON.parse(Buffer.from(token, 'base64url').toString())
    return Array.isArray(words) ? words : undefined
  } catch {
    return undefined
  }
}

/** The op that settles a claim. @param parts of its key, with logs of reservations */
export function settleOp(parts: readonly Part[], claim: Claim, actual: unknown): SettleOp {
  const { units, name, charged } = claim
  const flags = parts.flatMap(({ set }, i) => set.logs.map((log) => charged[i]?.includes(log.name) === true))
  return {
    type: 'settle',
    parts,
    reservation: name,
    units,
    actual: parseUnits(actual, 'invalid_cost', 0),
    charged: flags,
  }
}

export function settlementOf(op: SettleOp, { settled, returned }: SettleOutcome): Settlement {
  if (!settled) throw invalid(`the reservation was settled or cancelled before, or too late`, op.reservation)
  const logs = op.parts.flatMap(({ set }) => set.logs)
  const counting = returned.filter((_, i) => op.charged[i] && !logs[i]!.shadow)
  return {
    returned: counting.length === 0 ? 0 : Math.min(...counting),
    added: Math.max(0, op.actual - op.units),
  }
}

export function invalid(message: string, value: unknown): SlidegateError {
  return new SlidegateError('invalid_reservation', message, value)
}
