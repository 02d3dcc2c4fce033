import {
  SlidegateError,
  type SlidegateErrorCode,
  StoreUnavailableError,
  type StoreUnavailableReason,
} from '../../errors.ts'
import { type InForce, isReadable } from '../../limits/override.ts'
import { limitsOf } from '../outcome.ts'
import type { Result } from '../redis/transport.ts'
import type { Ban, Debit, ExplainOp, Op, OverridesOutcome, Part, RequestOp } from '../store.ts'
import { type Fields, fieldsIn, flagIn, integerIn, listIn, textIn, wrong } from './reading.ts'

// Outcomes as they come back. JSON has no Infinity, and no undefined among others: both are null there.

const REASONS: readonly StoreUnavailableReason[] = ['timeout', 'error', 'down', 'overload', 'full', 'state']

export function isReason(text: unknown): text is StoreUnavailableReason {
  return REASONS.includes(text as StoreUnavailableReason)
}

/** As it is written: an error as what was wrong. What a store has said of itself is nobody's business. */
export function writtenOutcome(result: Result | Error): unknown {
  if (!(result instanceof Error)) return result ?? null
  if (result instanceof StoreUnavailableError) return { error: { reason: result.reason } }
  const { message } = result
  return { error: { message, ...(result instanceof SlidegateError && { code: result.code }) } }
}

/** @throws {SlidegateError} for what is no outcome of this op */
export function readOutcome(op: Op, count: number, value: unknown): Result {
  if (typeof value === 'object' && value !== null && 'error' in value) {
    return readError(value.error)
  }
  switch (op.type) {
    case 'consume':
    case 'peek':
      return { ...requestOutcome(op, count, fieldsIn(value, 'the outcome', REQUESTS)) }
    case 'explain': {
      const told = fieldsIn(value, 'the outcome', [...REQUESTS, 'frees', 'bans', 'charges'])
      return { ...requestOutcome(op, count, told), ...explanation(op, told) }
    }
    case 'refund': {
      const { returned } = fieldsIn(value, 'the outcome', ['returned'])
      return { returned: integers(returned, 'returned', logsIn(op.parts)) }
    }
    case 'settle': {
      const { settled, returned } = fieldsIn(value, 'the outcome', ['settled', 'returned'])
      const isSettled = flagIn(settled, 'settled')
      return {
        settled: isSettled,
        returned: integers(returned, 'returned', isSettled ? logsIn(op.parts) : 0),
      }
    }
    case 'extend':
    case 'release':
      return { held: flagIn(fieldsIn(value, 'the outcome', ['held']).held, 'held') }
    case 'list': {
      const { lists } = fieldsIn(value, 'the outcome', ['lists'])
      const logs = logsIn(op.parts)
      return { lists: listIn(lists, 'lists', logs, logs).map(entries) }
    }
    case 'override':
      return { existed: flagIn(fieldsIn(value, 'the outcome', ['existed']).existed, 'existed') }
    case 'overrides':
      return page(value)
    default:
      if (value !== null) throw wrong('the outcome', value, 'null')
      return undefined
  }
}

function readError(value: unknown): StoreUnavailableError | SlidegateError {
  const { reason, code, message } = fieldsIn(value, 'the error', ['reason', 'code', 'message'])
  if (isReason(reason)) {
    return new StoreUnavailableError(reason, `the store of the service gave no answer: ${reason}`)
  }
  const told = text(message, 'the message')
  return code === undefined
    ? new StoreUnavailableError('error', `the service refused: ${told}`)
    : new SlidegateError(text(code, 'the code') as SlidegateErrorCode, told)
}

const REQUESTS = ['source', 'atMs', 'admitted', 'limits', 'waitMs', 'repeats', 'ban', 'debits', 'overrides']

function requestOutcome(op: RequestOp, count: number, told: Fields) {
  const { source, repeats, ban, debits, overrides } = told
  if (source !== 'store') throw wrong('the source', source, 'store')
  const limits = limitsOf(op.parts).length
  return {
    source: 'store',
    atMs: whole(told.atMs, 'atMs'),
    admitted: integerIn(told.admitted, 'admitted', 0, count),
    // Of none a memory store says as much as of one.
    limits: listIn(told.limits, 'limits', 3 * limits, 3 * Math.max(1, limits)).map(waitIn),
    waitMs: 0,
    ...(repeats !== undefined && { repeats: whole(repeats, 'repeats') }),
    ...(ban !== undefined && { ban: readBan(ban, op.parts.length) }),
    ...(debits !== undefined && { debits: debitsOf(debits, op.parts) }),
    ...(overrides !== undefined && {
      overrides: listIn(overrides, 'overrides', op.parts.length, op.parts.length).map((each) =>
        each === null ? undefined : inForce(fieldsIn(each, 'an override', IN_FORCE)),
      ),
    }),
  } as const
}

function explanation({ parts, charges: most }: ExplainOp, { frees, bans, charges }: Fields) {
  const limits = limitsOf(parts).length
  return {
    ...(most !== undefined && {
      charges: listIn(charges, 'charges', limits, limits).map((each) =>
        each === null ? undefined : listIn(each, 'charges', 0, most).map(charge),
      ),
    }),
    frees: listIn(frees, 'frees', limits, limits).map((times) => listIn(times, 'frees', 0, 16).map(waitIn)),
    bans: listIn(bans, 'bans', parts.length, parts.length).map((ban) => {
      if (ban === null) return undefined
      const { blockedMs, level, denials } = fieldsIn(ban, 'a ban', ['blockedMs', 'level', 'denials'])
      return {
        blockedMs: whole(blockedMs, 'blockedMs'),
        level: whole(level, 'level'),
        denials: whole(denials, 'denials'),
      }
    }),
  }
}

function charge(value: unknown) {
  const { atMs, units } = fieldsIn(value, 'a charge', ['atMs', 'units'])
  return { atMs: whole(atMs, 'atMs'), units: whole(units, 'units') }
}

function entries(value: unknown) {
  return listIn(value, 'a list', 0, 2 ** 20).map((each) => {
    const { name, units, atMs } = fieldsIn(each, 'an entry', ['name', 'units', 'atMs'])
    return { name: text(name, 'name'), units: whole(units, 'units'), atMs: whole(atMs, 'atMs') }
  })
}

const IN_FORCE = ['rule', 'ruleMs', 'blockedMs']

function inForce({ rule, ruleMs, blockedMs }: Fields): InForce {
  return {
    rule: textIn(rule, 'rule', isReadable, 'the rule of an override'),
    ruleMs: whole(ruleMs, 'ruleMs'),
    blockedMs: whole(blockedMs, 'blockedMs'),
  }
}

function page(value: unknown): OverridesOutcome {
  const { overrides, next, buckets } = fieldsIn(value, 'the outcome', ['overrides', 'next', 'buckets'])
  return {
    overrides: listIn(overrides, 'overrides', 0, 2 ** 16).map((each) => {
      const told = fieldsIn(each, 'an override', [...IN_FORCE, 'key', 'given'])
      const given = told.given === undefined ? undefined : text(told.given, 'given')
      return { key: text(told.key, 'key'), ...(given !== undefined && { given }), ...inForce(told) }
    }),
    ...(next !== undefined && { next: text(next, 'next') }),
    buckets: integerIn(buckets, 'buckets', 1, 1024),
  }
}

function logsIn(parts: readonly Part[]): number {
  return parts.reduce((sum, { set }) => sum + set.logs.length, 0)
}

function whole(value: unknown, what: string): number {
  return integerIn(value, what, 0, Number.MAX_SAFE_INTEGER)
}

/** `null` for ever. */
function waitIn(value: unknown): number {
  return value === null ? Number.POSITIVE_INFINITY : whole(value, 'a number of limits')
}

function readBan(value: unknown, parts: number): Ban {
  const told = fieldsIn(value, 'the ban', ['ms', 'parts'])
  const banned = listIn(told.parts, 'parts', 0, parts)
  return { ms: waitIn(told.ms), parts: banned.map((each) => integerIn(each, 'parts', 0, parts - 1)) }
}

/** What each part was charged; the service tells of its store only. */
export function debitsOf(value: unknown, parts: readonly Part[]): Debit[] {
  return listIn(value, 'debits', parts.length, parts.length).map((each, i) => {
    const { source, atMs, costs } = fieldsIn(each, 'a debit', ['source', 'atMs', 'costs'])
    if (source !== 'store') throw wrong('the source', source, 'store')
    return {
      source,
      atMs: whole(atMs, 'atMs'),
      ...(costs !== undefined && { costs: integers(costs, 'costs', parts[i]!.set.limits.length) }),
    }
  })
}

function integers(value: unknown, what: string, length: number): number[] {
  return listIn(value, what, length, length).map((each) => whole(each, what))
}

function text(value: unknown, what: string): string {
  return textIn(value, what, () => true, 'a text')
}
