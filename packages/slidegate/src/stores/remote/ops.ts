// Converts ops to JSON, and reads ops from untrusted JSON.

import { checkThat, invalidOption, show } from '../../errors.ts'
import { isStored, MAX_KEY_BYTES } from '../../key.ts'
import { mostCharges } from '../../limiter/explanation.ts'
import { areKept } from '../../limiter/request.ts'
import type { Entries } from '../../limits/limit.ts'
import type { LimitSet } from '../../limits/limit-set.ts'
import { FOREVER, isRule } from '../../limits/override.ts'
import type { FieldKind } from '../../ops/op.ts'
import { kindOf, OPS } from '../../ops/table.ts'
import { MAX_WINDOW_MS } from '../../runtime/duration.ts'
import { logsOf } from '../outcome.ts'
import type { ConsumeOp, ExplainOp, Op, OverrideOp, Part, RefundOp } from '../store.ts'
import { debitsOf } from './outcomes.ts'
import { type Fields, fieldsIn, fitting, flag, integer, list, listIn, text, whole } from './reading.ts'

const MAX_PARTS = 16

/** Maximum requests in an op. A lease has up to 2^20 requests, and many leases can be merged into one op. */
const MAX_COUNT: number = 2 ** 30

const MAX = Number.MAX_SAFE_INTEGER

/** Maximum length of a reservation's name. Callers can send any name, so its length must be bounded. */
const MAX_NAME = 1024

const MAX_BUCKETS = 1024

const stored = text(isStored, 'text in its stored form')
const place = text((value) => value === '' || isStored(value), 'text in its stored form')
const time = integer(0, MAX_WINDOW_MS)
const upTo = (most: number) =>
  text((value) => value.length <= most && value.isWellFormed(), `at most ${most} characters`)
type ReadField = (value: unknown, what: string, parts: readonly Part[]) => unknown

const READERS: Readonly<Record<FieldKind, ReadField>> = {
  one: fitting((value) => value === 1, '1'),
  count: integer(1, MAX_COUNT),
  units: integer(1, MAX),
  whole,
  integer: integer(-MAX, MAX),
  time,
  untilEnd: (value, what) => (value === FOREVER ? value : time(value, what)),
  flag,
  flagPerLog: (value, what, parts) => list(flag, logsOf(parts).length)(value, what),
  integerPerPart: (value, what, { length }) => list(integer(-MAX, MAX), length)(value, what),
  debitPerPart: (value, what, parts) => debitsOf(parts)(value, what),
  keyPerPart: (value, what, { length }) => list(upTo(MAX_KEY_BYTES), length)(value, what),
  id: stored,
  name: upTo(MAX_NAME),
  rule: text(isRule, 'the rule of an override'),
  bucket: integer(0, MAX_BUCKETS - 1),
  place,
}

const TYPES: readonly unknown[] = Object.keys(OPS)

/** @param count replaces the op's count if it has one */
export function textOfOp(op: Op, count: number, placeOf: (set: LimitSet) => number): string {
  const { type, parts } = op
  const json: Record<string, unknown> = { type, parts: parts.map(({ key, set }) => [placeOf(set), key]) }
  for (const name in OPS[type].fields) json[name] = (op as unknown as Fields)[name]
  if (json.count !== undefined) json.count = count
  return JSON.stringify(json)
}

export function readOp(value: unknown, sets: readonly (LimitSet | Error)[]): Op {
  const type = (value as Fields | null | undefined)?.type as Op['type']
  checkThat(TYPES.includes(type), 'the type', type, `one of ${TYPES.join(', ')}`)
  const { fields, keys } = OPS[type]
  const given = fieldsIn(value, `a ${type}`, ['type', 'parts', ...Object.keys(fields)])
  const parts = readParts(given.parts, sets, keys === 'index')
  const read: Record<string, unknown> = { type, parts }
  for (const [name, kind] of Object.entries(fields)) {
    const isOmitted = kind.endsWith('?') && given[name] === undefined
    if (!isOmitted) read[name] = READERS[kind.replace('?', '') as FieldKind](given[name], name, parts)
  }
  const op = read as unknown as Op
  checkSets(op)
  checkNames(op)
  checkValues(op)
  checkNumbers(op)
  return op
}

/** @param isPage whether the key is a position in a list of overrides */
function readParts(value: unknown, sets: readonly (LimitSet | Error)[], isPage: boolean): readonly Part[] {
  const parts = listIn(value, 'parts', 1, MAX_PARTS).map((each): Part => {
    const [at, key] = listIn(each, 'a part', 2)
    const set = sets[integer(0, sets.length - 1)(at, "a part's set")]!
    if (set instanceof Error) throw set
    if (set.logs.length === 0 && !set.isOverridable) {
      throw invalidOption("a part's set has no limits and no additions; add at least one", value)
    }
    return { key: (isPage ? place : stored)(key, "a part's key"), set }
  })
  if (new Set(parts.map(({ key, set }) => `${set.limiter} ${key}`)).size < parts.length) {
    throw invalidOption('two parts have the same key; each part needs a different one', value)
  }
  return parts
}

type SomeFields = Partial<Pick<ConsumeOp, 'cost' | 'count' | 'requestId' | 'reservation'>> &
  Partial<Pick<OverrideOp, 'rule' | 'ruleMs' | 'blockMs'>> &
  Partial<Pick<ExplainOp, 'charges'>> &
  Partial<Pick<RefundOp, 'units' | 'charged'>>

function checkSets(op: Op): void {
  const { type, parts } = op
  const { counts, keys } = kindOf(op)
  const { rule, ruleMs, blockMs, reservation, charged } = op as SomeFields
  const check = (isNeeded: boolean, what: string, has: (set: LimitSet) => boolean) => {
    const lacks = isNeeded && !parts.every(({ set }) => has(set))
    if (lacks) throw invalidOption(`each set for ${show(type)} needs ${what}`)
  }
  check(counts === true, 'limits', ({ limits }) => limits.length > 0)
  // In a set that isn't overridable, a key can only be unblocked.
  const isUnblock = rule === undefined && blockMs === 0
  const isOverride = keys === 'index' || (keys === 'andIndex' && !isUnblock)
  check(isOverride, 'isOverridable', ({ isOverridable }) => isOverridable)
  check(reservation !== undefined, 'the addition "reservations"', ({ logs }) =>
    logs.some(({ role }) => role === 'reservations'),
  )
  checkThat(
    keys !== 'index' || parts.length === 1,
    'parts',
    parts,
    'an array with one item if the op lists overrides',
  )
  const isRuled = (rule === undefined) === (ruleMs === undefined)
  checkThat(isRuled, 'ruleMs', ruleMs, 'set if and only if there is a rule')
  // Stores don't check `charged`.
  const isWrong = logsOf(parts).some(({ role }, i) => charged?.[i] && role !== 'count')
  checkThat(!isWrong, 'charged', true, "false for a log that requests aren't charged to")
}

/** A request needs an id if limits keep entries, and can't have one otherwise. */
function checkNames(op: Op): void {
  const { effect, fields } = kindOf(op)
  if (fields.requestId !== 'id?') return
  const { requestId } = op as SomeFields
  const isNamed = requestId !== undefined
  const isRight = areKept(op.parts) ? isNamed || effect === 'look' : !isNamed
  checkThat(isRight, 'requestId', requestId, 'set if and only if limits keep entries')
}

/** A request for a distinct-value limit has one key and costs one unit. */
function checkValues(op: Op): void {
  const { parts } = op
  if (parts.every(({ set }) => !set.keeps.has('value' satisfies Entries))) return
  checkThat(parts.length === 1, 'parts', parts, 'an array with one item if a limit counts values')
  if ('actual' in op) throw invalidOption("a limit that counts values doesn't support reservations")
  const { cost = 1, units = cost } = op as SomeFields
  checkThat(units === 1 || !kindOf(op).counts, 'the number of units', units, '1 if a limit counts values')
}

function checkNumbers(op: Op): void {
  const { count = 1, charges = 1, requestId, reservation } = op as SomeFields
  // If there were several requests, each would write the same entry.
  const isNamed = requestId !== undefined || reservation !== undefined
  checkThat(count === 1 || !isNamed, 'count', count, '1 if a request has an id or a reservation')
  const most = charges > 1 ? mostCharges(op.parts) : 1
  checkThat(charges <= most, 'charges', charges, `an integer from 1 to ${most}`)
}
