// Outcomes as JSON. If a number is expected, `null` means infinity. Otherwise, it means undefined.

import {
  checkThat,
  SlidegateError,
  type SlidegateErrorCode,
  StoreUnavailableError,
  type StoreUnavailableReason,
} from '../../errors.ts'
import { isReadable } from '../../limits/override.ts'
import { unused } from '../../ops/numbers.ts'
import type { Reply } from '../../ops/op.ts'
import type { ExplainOp } from '../../ops/peek.ts'
import type { ConsumeOutcome, Debit, ExplainOutcome, OverridesOutcome, Part } from '../../ops/request.ts'
import { kindOf, type Op } from '../../ops/table.ts'
import { limitsOf, logsOf } from '../outcome.ts'
import type { Result } from '../redis/batcher.ts'
import {
  anyText,
  type Fields,
  fieldsIn,
  fitting,
  flag,
  integer,
  list,
  listIn,
  maybe,
  orNull,
  type Read,
  shape,
  text,
  whole,
} from './reading.ts'

const REASONS: readonly StoreUnavailableReason[] = [
  ...(['timeout', 'error', 'down', 'overload', 'full', 'invalid_state'] as const),
]

export function isReason(value: unknown): value is StoreUnavailableReason {
  return REASONS.includes(value as StoreUnavailableReason)
}

/** Converts an outcome to JSON. If the store failed, callers get only the reason. */
export function writtenOutcome(result: Result | Error): unknown {
  if (!(result instanceof Error)) return result ?? null
  if (result instanceof StoreUnavailableError) return { error: { reason: result.reason } }
  const { message } = result
  return { error: { message, ...(result instanceof SlidegateError && { code: result.code }) } }
}

export function readOutcome(op: Op, count: number, value: unknown): Result {
  const isObject = typeof value === 'object' && value !== null
  if (isObject && 'error' in value) return readError(value.error)
  const { answer } = kindOf(op)
  if (answer === undefined) {
    checkThat(value === null, 'the outcome', value, 'null')
    return undefined
  }
  checkThat(isObject, 'the outcome', value, 'an object')
  const outcome = answer(replyIn(value as Fields, op, count))
  fieldsIn(value, 'the outcome', Object.keys(outcome ?? {}))
  return outcome
}

function readError(value: unknown): StoreUnavailableError | SlidegateError {
  const { reason, code, message } = fieldsIn(value, 'the error', ['reason', 'code', 'message'])
  if (isReason(reason)) {
    return new StoreUnavailableError(reason, `the service's store is unavailable: ${reason}`)
  }
  const detail = anyText(message, 'the message')
  return code === undefined
    ? new StoreUnavailableError('error', `the service rejected the request: ${detail}`)
    : new SlidegateError(anyText(code, 'the code') as SlidegateErrorCode, detail)
}

const source: Read<'store'> = fitting((value) => value === 'store', 'store')
const wait: Read<number> = (value) =>
  value === null ? Number.POSITIVE_INFINITY : whole(value, 'a number of limits')
const entry = shape('an entry', { name: anyText, units: whole, atMs: whole })
const charge = shape('a charge', { atMs: whole, units: whole })
const banState = shape('a ban', { blockedMs: whole, sinceMs: maybe(whole), level: whole, denials: whole })
const IN_FORCE = {
  rule: text(isReadable, 'the rule of an override'),
  ruleMs: whole,
  blockedMs: whole,
}
const inForce = shape('an override', IN_FORCE)
const page = shape('the outcome', {
  overrides: list(shape('an override', { ...IN_FORCE, key: anyText, given: maybe(anyText) }), 0, 2 ** 16),
  next: maybe(anyText),
  buckets: integer(1, 1024),
})

/** Reads a charge per part. In a service, a charge's source is always the store. */
export function debitsOf(parts: readonly Part[]): Read<Debit[]> {
  return (value, what) =>
    listIn(value, what, parts.length).map((each, i) => {
      const costs = maybe(list(whole, parts[i]!.set.limits.length))
      return shape('a debit', { source, atMs: whole, costs })(each, what)
    })
}

function replyIn(value: Fields, op: Op, count: number): Reply {
  const { parts } = op
  const limits = limitsOf(parts).length
  const logs = logsOf(parts).length
  const numbers = unused(limits).length
  const decision = {
    source,
    atMs: whole,
    admitted: integer(0, count),
    // For a set without limits, a memory store returns as many numbers as for one limit.
    limits: list(wait, numbers, Math.max(unused(1).length, numbers)),
    waitMs: () => 0,
    repeats: maybe(whole),
    ban: maybe(shape('the ban', { ms: wait, parts: list(integer(0, parts.length - 1), 0, parts.length) })),
    debits: maybe(debitsOf(parts)),
    overrides: maybe(list(orNull(inForce), parts.length)),
  }
  return {
    flag: (name) => flag(value[name], name),
    unitsPerLog: (name, areThere = true) => list(whole, areThere ? logs : 0)(value[name], name),
    entriesPerLog: (name) => list(list(entry, 0, 2 ** 20), logs)(value[name], name),
    decision: () => shape('the outcome', decision)(value, '') as ConsumeOutcome,
    explanation() {
      const { charges: most } = op as ExplainOp
      const explained = {
        ...decision,
        frees: list(list(wait, 0, 16), limits),
        bans: list(orNull(banState), parts.length),
        ...(most !== undefined && { charges: list(orNull(list(charge, 0, most)), limits) }),
      }
      return shape('the outcome', explained)(value, '') as ExplainOutcome
    },
    page: () => page(value, '') as OverridesOutcome,
  }
}
