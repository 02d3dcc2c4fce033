// Ops as JSON: writes them, and reads them with checks.

import { invalidOption } from '../../errors.ts'
import { isStored, MAX_KEY_BYTES } from '../../key.ts'
import { mostCharges } from '../../limiter/explanation.ts'
import { areKept } from '../../limiter/request.ts'
import type { Entries } from '../../limits/limit.ts'
import type { LimitSet } from '../../limits/limit-set.ts'
import { FOREVER, isRule } from '../../limits/override.ts'
import type { FieldKind } from '../../ops/op.ts'
import type { OverrideOp } from '../../ops/override.ts'
import type { Named, Part } from '../../ops/request.ts'
import { kindOf, OPS, type Op } from '../../ops/table.ts'
import { MAX_WINDOW_MS } from '../../runtime/duration.ts'
import { debitsOf } from './outcomes.ts'
import {
  type Fields,
  fieldsIn,
  flag,
  integer,
  list,
  listIn,
  type Read,
  text,
  whole,
  wrong,
} from './reading.ts'

const MAX_PARTS = 16

/** Maximum requests of an op. A lease has up to 2^20, and many can wait together. */
const MAX_COUNT: number = 2 ** 30

const MAX = Number.MAX_SAFE_INTEGER

/** Maximum length of a reservation's name. Callers can forge tokens. */
const MAX_NAME = 1024

const MAX_BUCKETS = 1024

const stored = text(isStored, 'text in its stored form')
const place = text((value) => value === '' || isStored(value), 'text in its stored form')
const time = integer(0, MAX_WINDOW_MS)
const upTo = (most: number) =>
  text((value) => value.length <= most && value.isWellFormed(), `${most} characters at most`)
type ReadField = (value: unknown, what: string, parts: readonly Part[]) => unknown

const perPart =
  (of: Read): ReadField =>
  (value, what, { length }) =>
    list(of, length, length)(value, what)

const READERS: Readonly<Record<FieldKind, ReadField>> = {
  one: (value, what) => {
    if (value === 1) return value
    throw wrong(what, value, '1')
  },
  count: integer(1, MAX_COUNT),
  units: integer(1, MAX),
  whole,
  integer: integer(-MAX, MAX),
  time,
  untilEnd: (value, what) => (value === FOREVER ? value : time(value, what)),
  flag,
  flagPerLog: (value, what, parts) => {
    const logs = parts.reduce((sum, { set }) => sum + set.logs.length, 0)
    return list(flag, logs, logs)(value, what)
  },
  integerPerPart: perPart(integer(-MAX, MAX)),
  debitPerPart: (value, what, parts) => debitsOf(parts)(value, what),
  keyPerPart: perPart(upTo(MAX_KEY_BYTES)),
  id: stored,
  name: upTo(MAX_NAME),
  rule: text(isRule, 'the rule of an override'),
  bucket: integer(0, MAX_BUCKETS - 1),
  place,
}

interface NamedField {
  readonly name: string
  readonly kind: FieldKind
  readonly isOptional: boolean
}

const FIELDS = new Map(
  Object.entries(OPS).map(([type, { fields }]) => [
    type,
    Object.entries(fields).map(([name, field]): NamedField => {
      const isOptional = field.endsWith('?')
      return { name, kind: (isOptional ? field.slice(0, -1) : field) as FieldKind, isOptional }
    }),
  ]),
)

/** @param count replaces the op's own, if it has one */
export function textOfOp(op: Op, count: number, placeOf: (set: LimitSet) => number): string {
  const { type, parts } = op
  const json: Record<string, unknown> = { type, parts: parts.map(({ key, set }) => [placeOf(set), key]) }
  for (const { name } of FIELDS.get(type)!) json[name] = (op as unknown as Fields)[name]
  if (json.count !== undefined) json.count = count
  return JSON.stringify(json)
}

export function readOp(value: unknown, sets: readonly (LimitSet | Error)[]): Op {
  const type = (value as Fields | null | undefined)?.type as Op['type']
  const fields = FIELDS.get(type)
  if (fields === undefined) throw wrong('the type', type, `one of ${Array.from(FIELDS.keys()).join(', ')}`)
  const given = fieldsIn(value, `a ${type}`, ['type', 'parts', ...fields.map(({ name }) => name)])
  const parts = readParts(given.parts, sets, OPS[type].keys === 'index')
  const read: Record<string, unknown> = { type, parts }
  for (const { name, kind, isOptional } of fields) {
    const field = given[name]
    if (field !== undefined || !isOptional) read[name] = READERS[kind](field, name, parts)
  }
  const op = read as unknown as Op
  checkLogs(op)
  checkNames(op)
  checkValues(op)
  checkNumbers(op)
  return op
}

interface SomeFields {
  readonly cost?: number
  readonly count?: number
  readonly units?: number
  readonly charges?: number
  readonly requestId?: string
  readonly reservation?: string
}

function checkNumbers(op: Op): void {
  const { count = 1, charges = 1, requestId, reservation } = op as SomeFields
  // With a count, the entry would be written once per request.
  if (count > 1 && (requestId !== undefined || reservation !== undefined)) {
    throw wrong('count', count, '1 if a request has an id or a reservation')
  }
  const most = charges > 1 ? mostCharges(op.parts) : 1
  if (charges > most) throw wrong('charges', charges, `an integer from 1 to ${most}`)
}

/** @param isPage whether the key is a position in a list of overrides */
function readParts(value: unknown, sets: readonly (LimitSet | Error)[], isPage: boolean): readonly Part[] {
  const parts = listIn(value, 'parts', 1, MAX_PARTS).map((each): Part => {
    const [at, key] = listIn(each, 'a part', 2, 2)
    const set = sets[integer(0, sets.length - 1)(at, 'the set of a part')]!
    if (set instanceof Error) throw set
    if (set.logs.length === 0 && !set.isOverridable) {
      throw invalidOption('the set of a part has no limits and no additions; add at least one', value)
    }
    return { key: (isPage ? place : stored)(key, 'the key of a part'), set }
  })
  if (parts.length > 1 && new Set(parts.map(({ key, set }) => `${set.limiter} ${key}`)).size < parts.length) {
    throw invalidOption('two parts have the same key; each part needs its own', value)
  }
  return parts
}

function checkLogs(op: Op): void {
  const { type, parts } = op
  const { counts, keys } = kindOf(op)
  if (counts && parts.some(({ set }) => set.limits.length === 0)) {
    throw invalidOption(`the op ${type} needs limits in each of its sets`)
  }
  if (keys === 'andIndex') checkOverride(op as OverrideOp)
  if (keys === 'index' && (parts.length > 1 || !parts[0]!.set.isOverridable)) {
    throw invalidOption('a page of overrides needs exactly one set, with isOverridable')
  }
  const isKept = ({ set }: Part) => set.logs.some(({ role }) => role === 'reservations')
  if ((op as SomeFields).reservation !== undefined && !parts.every(isKept)) {
    throw invalidOption(
      `the op ${type} with a reservation needs the addition "reservations" in each of its sets`,
    )
  }
  // Checked here, because stores don't.
  const all = parts.flatMap(({ set }) => set.logs)
  if ('charged' in op && all.some(({ role }, i) => op.charged[i] && role !== 'count')) {
    throw wrong('charged', true, "false for a log that requests aren't charged to")
  }
}

/** Without overrides, a key can only be unblocked. */
function checkOverride({ parts, rule, ruleMs, blockMs }: OverrideOp): void {
  const isUnblocked = rule === undefined && blockMs === 0
  if (!isUnblocked && !parts.every(({ set }) => set.isOverridable)) {
    throw invalidOption('the op override needs isOverridable in each of its sets')
  }
  if ((rule === undefined) !== (ruleMs === undefined))
    throw wrong('ruleMs', ruleMs, 'set if and only if there is a rule')
}

/** An id is required for logs that keep entries, and rejected for others. */
function checkNames(op: Op): void {
  const { effect, fields } = kindOf(op)
  if (fields.requestId !== 'id?') return
  const isNamed = (op as Named).requestId !== undefined
  if (areKept(op.parts) ? isNamed || effect === 'look' : !isNamed) return
  throw wrong('requestId', (op as Named).requestId, 'set if and only if limits keep entries')
}

/** Checks that a request to a distinct-value limit has one key and costs one unit. */
function checkValues(op: Op): void {
  const { parts } = op
  if (parts.every(({ set }) => !set.keeps.has('value' satisfies Entries))) return
  if (parts.length > 1) throw wrong('parts', parts.length, '1 if a limit counts values')
  if ('actual' in op) throw invalidOption("a limit that counts values doesn't support reservations")
  const { cost = 1, units = cost } = op as SomeFields
  if (units !== 1 && kindOf(op).counts) throw wrong('a number of units', units, '1 if a limit counts values')
}
