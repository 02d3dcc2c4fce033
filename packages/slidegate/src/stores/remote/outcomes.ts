// Outcomes as JSON: written, and read with checks.

import {
  SlidegateError,
  type SlidegateErrorCode,
  StoreUnavailableError,
  type StoreUnavailableReason,
} from '../../errors.ts'
import type { BanState, Entry } from '../../limits/limit.ts'
import { type InForce, isReadable } from '../../limits/override.ts'
import type { ExplainOp } from '../../ops/explain.ts'
import { unused } from '../../ops/numbers.ts'
import type { Reply } from '../../ops/op.ts'
import type { Ban, ConsumeOutcome, Debit, ExplainOutcome, OverridesOutcome, Part } from '../../ops/request.ts'
import { kindOf, type Op } from '../../ops/table.ts'
import { limitsOf, zerosFor } from '../outcome.ts'
import type { Result } from '../redis/batcher.ts'
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
    return new StoreUnavailableError(reason, `the store of the service gave no answer: ${reason}`)
  }
  const told = text(message, 'the message')
  return code === undefined
    ? new StoreUnavailableError('error', `the service refused: ${told}`)
    : new SlidegateError(text(code, 'the code') as SlidegateErrorCode, told)
}

/** An outcome as JSON. */
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
    return flagIn(this.#read(name), name)
  }

  unitsPerLog(name: string, areThere = true): readonly number[] {
    return integers(this.#read(name), name, areThere ? logsIn(this.#op.parts) : 0)
  }

  entriesPerLog(name: string): readonly (readonly Entry[])[] {
    const logs = logsIn(this.#op.parts)
    return listIn(this.#read(name), name, logs, logs).map(entries)
  }

  decision(): ConsumeOutcome {
    const { parts } = this.#op
    const source = this.#read('source')
    if (source !== 'store') throw wrong('the source', source, 'store')
    this.#read('waitMs')
    return {
      source,
      atMs: whole(this.#read('atMs'), 'atMs'),
      admitted: integerIn(this.#read('admitted'), 'admitted', 0, this.#count),
      limits: this.#numbers(zerosFor(parts).length),
      waitMs: 0,
      repeats: this.#maybe('repeats', whole),
      ban: this.#maybe('ban', (ban) => readBan(ban, parts.length)),
      debits: this.#maybe('debits', (debits) => debitsOf(debits, parts)),
      overrides: this.#maybe('overrides', (overrides) =>
        listIn(overrides, 'overrides', parts.length, parts.length).map((each) =>
          each === null ? undefined : inForce(fieldsIn(each, 'an override', IN_FORCE)),
        ),
      ),
    }
  }

  /** With no limits, a memory store returns as many numbers as with one. */
  #numbers(length: number): readonly number[] {
    return listIn(this.#read('limits'), 'limits', length, Math.max(unused(1).length, length)).map(waitIn)
  }

  explanation(): ExplainOutcome {
    const { parts, charges: most } = this.#op as ExplainOp
    const limits = limitsOf(parts).length
    return {
      ...this.decision(),
      frees: listIn(this.#read('frees'), 'frees', limits, limits).map((times) =>
        listIn(times, 'frees', 0, 16).map(waitIn),
      ),
      bans: listIn(this.#read('bans'), 'bans', parts.length, parts.length).map(banState),
      ...(most !== undefined && {
        charges: listIn(this.#read('charges'), 'charges', limits, limits).map((each) =>
          each === null ? undefined : listIn(each, 'charges', 0, most).map(charge),
        ),
      }),
    }
  }

  page(): OverridesOutcome {
    return {
      overrides: listIn(this.#read('overrides'), 'overrides', 0, 2 ** 16).map((each) => {
        const told = fieldsIn(each, 'an override', [...IN_FORCE, 'key', 'given'])
        const given = told.given === undefined ? undefined : text(told.given, 'given')
        return { key: text(told.key, 'key'), ...(given !== undefined && { given }), ...inForce(told) }
      }),
      next: this.#maybe('next', text),
      buckets: integerIn(this.#read('buckets'), 'buckets', 1, 1024),
    }
  }

  /** @throws {SlidegateError} if there is more than was read */
  checkNames(): void {
    if (this.#names.length > 0) fieldsIn(this.#value, 'the outcome', this.#names)
  }

  #read(name: string): unknown {
    if (typeof this.#value !== 'object' || this.#value === null) {
      throw wrong('the outcome', this.#value, 'an object')
    }
    this.#names.push(name)
    return (this.#value as Fields)[name]
  }

  #maybe<Value>(name: string, read: (value: unknown, what: string) => Value): Value | undefined {
    const value = this.#read(name)
    return value === undefined ? undefined : read(value, name)
  }
}

function banState(value: unknown): BanState | undefined {
  if (value === null) return undefined
  const { blockedMs, level, denials } = fieldsIn(value, 'a ban', ['blockedMs', 'level', 'denials'])
  return {
    blockedMs: whole(blockedMs, 'blockedMs'),
    level: whole(level, 'level'),
    denials: whole(denials, 'denials'),
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
