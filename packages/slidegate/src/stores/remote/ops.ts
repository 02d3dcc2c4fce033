// Ops as JSON: written, and read with checks.

import { invalidOption, show } from '../../errors.ts'
import { isStored, MAX_KEY_BYTES } from '../../key.ts'
import { mostCharges } from '../../limiter/explanation.ts'
import { areKept } from '../../limiter/request.ts'
import type { Entries } from '../../limits/limit.ts'
import type { LimitSet, Role } from '../../limits/limit-set.ts'
import { FOREVER, isRule } from '../../limits/override.ts'
import type { FieldKind } from '../../ops/op.ts'
import type { OverrideOp } from '../../ops/override.ts'
import type { Named, Part } from '../../ops/request.ts'
import { kindOf, OPS, type Op } from '../../ops/table.ts'
import { MAX_WINDOW_MS } from '../../runtime/duration.ts'
import { debitsOf } from './outcomes.ts'
import { type Fields, fieldsIn, flagIn, integerIn, listIn, textIn, wrong } from './reading.ts'

// Ops as JSON, and back. What a field may be stands here for both directions.

/** As many dimensions as a limiter has. */
const MAX_PARTS = 16

/** A lease is for 2^20 requests at most, and so many of those wait together. */
const MAX_COUNT: number = 2 ** 30

const MAX = Number.MAX_SAFE_INTEGER

/** Of a reservation: tokens are made by whoever likes. */
const MAX_NAME = 1024

/** Buckets of a store at most. */
const MAX_BUCKETS = 1024

type Read = (value: unknown, what: string) => unknown

const units: Read = (value, what) => integerIn(value, what, 1, MAX)
const integer: Read = (value, what) => integerIn(value, what, -MAX, MAX)
const stored: Read = (value, what) => textIn(value, what, isStored, 'a text as it is stored')
const upTo =
  (most: number): Read =>
  (value, what) =>
    textIn(value, what, (text) => text.length <= most && text.isWellFormed(), `${most} characters at most`)
const each =
  (read: Read): Read =>
  (value, what) =>
    listIn(value, what, 0, 2 ** 16).map((one) => read(one, what))

const READERS: Readonly<Record<FieldKind, Read>> = {
  one: (value, what) => {
    if (value === 1) return value
    throw wrong(what, value, '1')
  },
  count: (value, what) => integerIn(value, what, 1, MAX_COUNT),
  units,
  whole: (value, what) => integerIn(value, what, 0, MAX),
  integer,
  time: (value, what) => integerIn(value, what, 0, MAX_WINDOW_MS),
  untilEnd: (value, what) => (value === FOREVER ? value : integerIn(value, what, 0, MAX_WINDOW_MS)),
  flag: flagIn,
  flagPerLog: each(flagIn),
  integerPerPart: each(integer),
  debitPerPart: each((value) => value),
  keyPerPart: each(upTo(MAX_KEY_BYTES)),
  id: stored,
  name: upTo(MAX_NAME),
  rule: (value, what) => textIn(value, what, isRule, 'the rule of an override'),
  bucket: (value, what) => integerIn(value, what, 0, MAX_BUCKETS - 1),
  place: (value, what) =>
    textIn(value, what, (text) => text === '' || isStored(text), 'a text as it is stored'),
}

interface NamedField {
  readonly name: string
  readonly kind: FieldKind
  readonly isOptional: boolean
}

/** The fields of each op besides its parts. */
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
  const told: Record<string, unknown> = { type, parts: parts.map(({ key, set }) => [placeOf(set), key]) }
  for (const { name } of FIELDS.get(type)!)
    told[name] = name === 'count' ? count : (op as unknown as Fields)[name]
  return JSON.stringify(told)
}

/** @throws {SlidegateError} for what is no op that a limiter would ask */
export function readOp(value: unknown, sets: readonly (LimitSet | Error)[]): Op {
  const type = (value as Fields | null | undefined)?.type as Op['type']
  const fields = FIELDS.get(type)
  if (fields === undefined) throw wrong('the type', type, `one of ${Array.from(FIELDS.keys()).join(', ')}`)
  const told = fieldsIn(value, `a ${type}`, ['type', 'parts', ...fields.map(({ name }) => name)])
  const op: Record<string, unknown> = { type, parts: readParts(told.parts, sets, OPS[type].keys === 'index') }
  for (const { name, kind, isOptional } of fields) {
    const field = told[name]
    if (field !== undefined || !isOptional) op[name] = READERS[kind](field, name)
  }
  const read = op as unknown as Op
  for (const field of fields) checkLength(op[field.name], field, read.parts)
  checkLogs(read)
  checkNames(read)
  checkValues(read)
  checkNumbers(read)
  return read
}

function checkNumbers(op: Op): void {
  const {
    count = 1,
    charges = 1,
    requestId,
    reservation,
  } = op as {
    readonly count?: number
    readonly charges?: number
    readonly requestId?: string
    readonly reservation?: string
  }
  // With a count, an entry of this request would be written once per request.
  if (count > 1 && (requestId !== undefined || reservation !== undefined)) {
    throw wrong('count', count, '1 where a request brings an id or a reservation')
  }
  const most = charges > 1 ? mostCharges(op.parts) : 1
  if (charges > most) throw wrong('charges', charges, `an integer from 1 to ${most}`)
}

/** Checks the length of a field with a value per log or part. */
function checkLength(value: unknown, { name, kind }: NamedField, parts: readonly Part[]): void {
  const each = /Per(Log|Part)$/.exec(kind)?.[1]?.toLowerCase()
  if (each === undefined || value === undefined) return
  const { length } = value as readonly unknown[]
  const most = each === 'log' ? parts.reduce((sum, { set }) => sum + set.logs.length, 0) : parts.length
  if (length !== most) throw wrong(name, length, `an array of ${most}, one for each ${each}`)
}

/** @param isOfNone whether any key will do */
function readParts(value: unknown, sets: readonly (LimitSet | Error)[], isOfNone: boolean): readonly Part[] {
  const parts = listIn(value, 'parts', 1, MAX_PARTS).map((each): Part => {
    const [place, key] = listIn(each, 'a part', 2, 2)
    const set = sets[integerIn(place, 'the set of a part', 0, sets.length - 1)]!
    if (set instanceof Error) throw set
    if (set.logs.length === 0 && !set.isOverridable) {
      throw invalidOption('the set of a part has no limits and no additions; it needs at least one', value)
    }
    const text = isOfNone ? READERS.place : stored
    return { key: text(key, 'the key of a part') as string, set }
  })
  if (parts.length > 1 && new Set(parts.map(({ key, set }) => `${set.limiter} ${key}`)).size < parts.length) {
    throw invalidOption('two parts are of the same key; each must be of its own', value)
  }
  return parts
}

function checkLogs(op: Op): void {
  const { type, parts } = op
  const { counts, keys } = kindOf(op)
  if (counts && parts.some(({ set }) => set.limits.length === 0)) {
    throw invalidOption(`a ${type} needs limits in each of its sets`)
  }
  if (keys === 'andIndex') checkOverride(op as OverrideOp)
  if (keys === 'index' && (parts.length > 1 || !parts[0]!.set.isOverridable)) {
    throw invalidOption('a page of overrides is of one set that has isOverridable')
  }
  if ('reservation' in op && op.reservation !== undefined) need(parts, 'reservations', type)
  // Stores do not look whether there is anything to return of it.
  const all = parts.flatMap(({ set }) => set.logs)
  if ('charged' in op && all.some(({ role }, i) => op.charged[i] && role !== 'count')) {
    throw wrong('charged', true, 'false for a log that no request is charged to')
  }
  if ('debits' in op && op.debits !== undefined) debitsOf(op.debits, parts)
}

/** If keys can't have overrides, only their bans can be lifted. */
function checkOverride({ parts, rule, ruleMs, blockMs }: OverrideOp): void {
  const isLetGo = rule === undefined && blockMs === 0
  if (!isLetGo && !parts.every(({ set }) => set.isOverridable)) {
    throw invalidOption('an override needs isOverridable in each of its sets')
  }
  if ((rule === undefined) !== (ruleMs === undefined))
    throw wrong('ruleMs', ruleMs, 'there with a rule, and only then')
}

function haveAll(parts: readonly Part[], role: Role): boolean {
  return parts.every(({ set }) => set.logs.some((log) => log.role === role))
}

function need(parts: readonly Part[], role: Role, type: string): void {
  if (haveAll(parts, role)) return
  throw invalidOption(`this ${type} needs the addition ${show(role)} in each of its sets`)
}

/** An id is required for logs that keep entries, and rejected for others. */
function checkNames(op: Op): void {
  const { effect, fields } = kindOf(op)
  if (fields.requestId !== 'id?') return
  const isNamed = (op as Named).requestId !== undefined
  if (areKept(op.parts) ? isNamed || effect === 'look' : !isNamed) return
  throw wrong('requestId', (op as Named).requestId, 'there where limits keep entries, and only there')
}

/** A value is one unit of one key, and nothing else is done with it. */
function checkValues(op: Op): void {
  const { parts } = op
  if (parts.every(({ set }) => !set.keeps.has('value' satisfies Entries))) return
  if (parts.length > 1) throw wrong('parts', parts.length, '1 where a limit counts values')
  if ('actual' in op) throw invalidOption('a limit that counts values takes no reservations')
  const { cost = 1, units = cost } = op as { readonly cost?: number; readonly units?: number }
  if (units !== 1 && kindOf(op).counts)
    throw wrong('a number of units', units, '1 where a limit counts values')
}
