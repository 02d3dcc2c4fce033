// Outcomes as JSON. `null` stands for infinity in times, and for undefined in lists.

import {
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
import { limitsOf } from '../outcome.ts'
import type { Result } from '../redis/batcher.ts'
import {
  anyText,
  type Fields,
  fieldsIn,
  flag,
  integer,
  list,
  listIn,
  maybe,
  orNull,
  type Read,
  readShape,
  type ShapeOf,
  shape,
  text,
  whole,
  wrong,
} from './reading.ts'

const REASONS: readonly StoreUnavailableReason[] = [
  'timeout',
  'error',
  'down',
  'overload',
  'full',
  'invalid_state',
]

export function isReason(value: unknown): value is StoreUnavailableReason {
  return REASONS.includes(value as StoreUnavailableReason)
}

/** An outcome as JSON. For errors of the store, callers get only the reason. */
export function writtenOutcome(result: Result | Error): unknown {
  if (!(result instanceof Error)) return result ?? null
  if (result instanceof StoreUnavailableError) return { error: { reason: result.reason } }
  const { message } = result
  return { error: { message, ...(result instanceof SlidegateError && { code: result.code }) } }
}

export function readOutcome(op: Op, count: number, value: unknown): Result {
  if (typeof value === 'object' && value !== null && 'error' in value) return readError(value.error)
  const { answer } = kindOf(op)
  if (answer === undefined && value !== null) throw wrong('the outcome', value, 'null')
  const reply = new JsonReply(op, count, value)
  const outcome = answer?.(reply)
  reply.checkNames()
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

const source: Read<'store'> = (value) => {
  if (value === 'store') return value
  throw wrong('the source', value, 'store')
}
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
const listed = shape('an override', { ...IN_FORCE, key: anyText, given: maybe(anyText) })

/** The charges of an op, one per part. A service reports only those of its store. */
export function debitsOf(parts: readonly Part[]): Read<Debit[]> {
  return (value, what) =>
    listIn(value, what, parts.length, parts.length).map((each, i) => {
      const { length } = parts[i]!.set.limits
      const costs = maybe(list(whole, length, length))
      return shape('a debit', { source, atMs: whole, costs })(each, what)
    })
}

function decisionOf({ parts }: Op, count: number) {
  const { length } = parts
  const numbers = unused(limitsOf(parts).length).length
  return {
    source,
    atMs: whole,
    admitted: integer(0, count),
    // For a set without limits, a memory store returns as many numbers as for one limit.
    limits: list(wait, numbers, Math.max(unused(1).length, numbers)),
    waitMs: () => 0,
    repeats: maybe(whole),
    ban: maybe(shape('the ban', { ms: wait, parts: list(integer(0, length - 1), 0, length) })),
    debits: maybe(debitsOf(parts)),
    overrides: maybe(list(orNull(inForce), length, length)),
  }
}

/** Reads an outcome, and remembers which fields it may have. */
class JsonReply implements Reply {
  readonly #op: Op
  readonly #count: number
  readonly #value: unknown
  readonly #names: string[] = []

  constructor(op: Op, count: number, value: unknown) {
    this.#op = op
    this.#count = count
    this.#value = value
  }

  flag(name: string): boolean {
    return this.#read({ [name]: flag })[name]!
  }

  unitsPerLog(name: string, areThere = true): readonly number[] {
    const logs = areThere ? this.#logs : 0
    return this.#read({ [name]: list(whole, logs, logs) })[name]!
  }

  entriesPerLog(name: string): ReturnType<Reply['entriesPerLog']> {
    return this.#read({ [name]: list(list(entry, 0, 2 ** 20), this.#logs, this.#logs) })[name]!
  }

  decision(): ConsumeOutcome {
    return this.#read(decisionOf(this.#op, this.#count)) as ConsumeOutcome
  }

  explanation(): ExplainOutcome {
    const { parts, charges: most } = this.#op as ExplainOp
    const limits = limitsOf(parts).length
    return this.#read({
      ...decisionOf(this.#op, this.#count),
      frees: list(list(wait, 0, 16), limits, limits),
      bans: list(orNull(banState), parts.length, parts.length),
      ...(most !== undefined && { charges: list(orNull(list(charge, 0, most)), limits, limits) }),
    }) as ExplainOutcome
  }

  page(): OverridesOutcome {
    return this.#read({
      overrides: list(listed, 0, 2 ** 16),
      next: maybe(anyText),
      buckets: integer(1, 1024),
    }) as OverridesOutcome
  }

  checkNames(): void {
    if (this.#names.length > 0) fieldsIn(this.#value, 'the outcome', this.#names)
  }

  #read<S extends Readonly<Record<string, Read>>>(fields: S): ShapeOf<S> {
    if (typeof this.#value !== 'object' || this.#value === null) {
      throw wrong('the outcome', this.#value, 'an object')
    }
    this.#names.push(...Object.keys(fields))
    return readShape(this.#value as Fields, fields)
  }

  get #logs(): number {
    return this.#op.parts.reduce((sum, { set }) => sum + set.logs.length, 0)
  }
}
