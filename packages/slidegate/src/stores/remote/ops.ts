import { invalidOption, show } from '../../errors.ts'
import { isStored, MAX_KEY_BYTES } from '../../key.ts'
import { mostCharges } from '../../limiter/explanation.ts'
import { areKept } from '../../limiter/names.ts'
import type { Entries } from '../../limits/limit.ts'
import type { LimitSet, Role } from '../../limits/limit-set.ts'
import { FOREVER, isRule } from '../../limits/override.ts'
import { MAX_WINDOW_MS } from '../../runtime/duration.ts'
import type { ConsumeOp, ExplainOp, Named, Op, OverrideOp, Part } from '../store.ts'
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
const any: Read = (value, what) => integerIn(value, what, -MAX, MAX)
const whole: Read = (value, what) => integerIn(value, what, 0, MAX)
const stored: Read = (value, what) => textIn(value, what, isStored, 'a text as it is stored')
const lasting: Read = (value, what) => (value === FOREVER ? value : integerIn(value, what, 0, MAX_WINDOW_MS))
const upTo =
  (most: number): Read =>
  (value, what) =>
    textIn(value, what, (text) => text.length <= most && text.isWellFormed(), `${most} characters at most`)
const each =
  (read: Read): Read =>
  (value, what) =>
    listIn(value, what, 0, 2 ** 16).map((one) => read(one, what))

const READERS: Readonly<Record<string, Read>> = {
  cost: units,
  count: (value, what) => integerIn(value, what, 1, MAX_COUNT),
  charges: units,
  leaseMs: (value, what) => integerIn(value, what, 0, MAX_WINDOW_MS),
  units,
  actual: whole,
  atMs: whole,
  ruleMs: lasting,
  blockMs: lasting,
  requestId: stored,
  mayRepeat: flagIn,
  isWaiting: flagIn,
  charged: each(flagIn),
  instants: each(any),
  debits: each((value) => value),
  reservation: upTo(MAX_NAME),
  rule: (value, what) => textIn(value, what, isRule, 'the rule of an override'),
  given: each(upTo(MAX_KEY_BYTES)),
  bucket: (value, what) => integerIn(value, what, 0, MAX_BUCKETS - 1),
  after: (value, what) =>
    textIn(value, what, (text) => text === '' || isStored(text), 'a text as it is stored'),
}

const NAMES = ['requestId?', 'mayRepeat?']

/** What each op says besides its parts; what ends with `?` may be left out. */
const FIELDS: Readonly<Record<Op['type'], readonly Field[]>> = {
  consume: fields('cost', 'count', 'leaseMs', 'isWaiting?', 'reservation?', ...NAMES),
  peek: fields('cost', 'count', ...NAMES),
  explain: fields('cost', 'count', 'charges?'),
  charge: fields('units', ...NAMES),
  refund: fields('units', 'atMs', 'charged', 'debits?', ...NAMES),
  extend: fields('units', 'requestId'),
  release: fields('units', 'requestId'),
  list: [],
  reset: [],
  settle: fields('reservation', 'units', 'actual', 'charged', 'instants'),
  override: fields('rule?', 'ruleMs?', 'blockMs?', 'given?'),
  overrides: fields('bucket', 'after'),
}

interface Field {
  readonly name: string
  readonly isOptional: boolean
}

function fields(...names: readonly string[]): readonly Field[] {
  return names.map((each) => ({ name: each.replace('?', ''), isOptional: each.endsWith('?') }))
}

/** @param count of requests that it decides, where it is a consume op */
export function textOfOp(op: Op, count: number, placeOf: (set: LimitSet) => number): string {
  const { type, parts } = op
  const told: Record<string, unknown> = { type, parts: parts.map(({ key, set }) => [placeOf(set), key]) }
  for (const { name } of FIELDS[type]) told[name] = (op as unknown as Fields)[name]
  if (type === 'consume') told.count = count
  return JSON.stringify(told)
}

/** @throws {SlidegateError} for what is no op that a limiter would ask */
export function readOp(value: unknown, sets: readonly (LimitSet | Error)[]): Op {
  const type = (value as Fields | null | undefined)?.type
  if (typeof type !== 'string' || !Object.hasOwn(FIELDS, type)) {
    throw wrong('the type', type, `one of ${Object.keys(FIELDS).join(', ')}`)
  }
  const known = FIELDS[type as Op['type']]
  const told = fieldsIn(value, `a ${type}`, ['type', 'parts', ...known.map(({ name }) => name)])
  const op: Record<string, unknown> = { type, parts: readParts(told.parts, sets, type) }
  for (const { name, isOptional } of known) {
    const field = told[name]
    const read = type === 'settle' && name === 'units' ? any : READERS[name]!
    if (field !== undefined || !isOptional) op[name] = read(field, name)
  }
  if (type !== 'consume' && 'count' in op && op.count !== 1) throw wrong('count', op.count, '1')
  const read = op as unknown as Op
  checkLogs(read)
  if ('cost' in read || 'units' in read) checkNames(read)
  checkValues(read)
  if (read.type === 'consume' && read.count > 1) checkTogether(read)
  if (read.type === 'explain') checkCharges(read)
  return read
}

/** What is one request's own no others share: with a count, each of its entries would be written so many times. */
function checkTogether({ count, requestId, reservation }: ConsumeOp): void {
  if (requestId === undefined && reservation === undefined) return
  throw wrong('count', count, '1 where a request brings an id or a reservation')
}

function checkCharges({ charges = 1, parts }: ExplainOp): void {
  const most = mostCharges(parts)
  if (charges > most) throw wrong('charges', charges, `an integer from 1 to ${most}`)
}

function readParts(value: unknown, sets: readonly (LimitSet | Error)[], type: string): readonly Part[] {
  const parts = listIn(value, 'parts', 1, MAX_PARTS).map((each): Part => {
    const [place, key] = listIn(each, 'a part', 2, 2)
    const set = sets[integerIn(place, 'the set of a part', 0, sets.length - 1)]!
    if (set instanceof Error) throw set
    if (set.logs.length === 0 && !set.isOverridable) {
      throw invalidOption('the set of a part has no limits and no additions; it needs at least one', value)
    }
    // A page of overrides is of no key.
    const text = type === 'overrides' ? READERS.after! : stored
    return { key: text(key, 'the key of a part') as string, set }
  })
  if (parts.length > 1 && new Set(parts.map(({ key, set }) => `${set.limiter} ${key}`)).size < parts.length) {
    throw invalidOption('two parts are of the same key; each must be of its own', value)
  }
  return parts
}

/** Ops that work with limits, of which there must be some. */
const LIMITED: readonly Op['type'][] = ['consume', 'peek', 'charge', 'refund', 'extend', 'release', 'settle']

function checkLogs(op: Op): void {
  const { type, parts } = op
  const logs = parts.reduce((sum, { set }) => sum + set.logs.length, 0)
  if (LIMITED.includes(type) && parts.some(({ set }) => set.limits.length === 0)) {
    throw invalidOption(`a ${type} needs limits in each of its sets`)
  }
  if (type === 'override') checkOverride(op)
  if (type === 'overrides' && (parts.length > 1 || !parts[0]!.set.isOverridable)) {
    throw invalidOption('a page of overrides is of one set that has isOverridable')
  }
  if ('reservation' in op && op.reservation !== undefined) need(parts, 'reservations', type)
  if ('charged' in op) {
    if (op.charged.length !== logs) {
      throw wrong('charged', op.charged.length, `an array of ${logs}, one for each log`)
    }
    // Stores do not look whether there is anything to return of it.
    const all = parts.flatMap(({ set }) => set.logs)
    if (all.some(({ role }, i) => op.charged[i] && role !== 'count')) {
      throw wrong('charged', true, 'false for a log that no request is charged to')
    }
  }
  if ('instants' in op && op.instants.length !== parts.length) {
    throw wrong('instants', op.instants.length, `an array of ${parts.length}, one for each part`)
  }
  if ('debits' in op && op.debits !== undefined) debitsOf(op.debits, parts)
}

/** Of those whose keys have no overrides only the bans can be forgotten. */
function checkOverride({ parts, rule, ruleMs, blockMs, given }: OverrideOp): void {
  const isLetGo = rule === undefined && blockMs === 0
  if (!isLetGo && !parts.every(({ set }) => set.isOverridable)) {
    throw invalidOption('an override needs isOverridable in each of its sets')
  }
  if ((rule === undefined) !== (ruleMs === undefined))
    throw wrong('ruleMs', ruleMs, 'there with a rule, and only then')
  if (given !== undefined && given.length !== parts.length) {
    throw wrong('given', given.length, `an array of ${parts.length}, one for each part`)
  }
}

function haveAll(parts: readonly Part[], role: Role): boolean {
  return parts.every(({ set }) => set.logs.some((log) => log.role === role))
}

function need(parts: readonly Part[], role: Role, type: string): void {
  if (haveAll(parts, role)) return
  throw invalidOption(`this ${type} needs the addition ${show(role)} in each of its sets`)
}

/** Logs that keep entries are told what these are called; others are told nothing. */
function checkNames(op: Op): void {
  const { parts, type } = op
  const { requestId } = op as Named
  const writes = type === 'consume' || type === 'charge' || type === 'refund'
  if (
    areKept(parts)
      ? writes && requestId === undefined
      : requestId !== undefined && type !== 'extend' && type !== 'release'
  ) {
    throw wrong('requestId', requestId, 'there where limits keep entries, and only there')
  }
}

/** A value is one unit of one key, and nothing else is done with it. */
function checkValues(op: Op): void {
  const { type, parts } = op
  if (parts.every(({ set }) => !set.keeps.has('value' satisfies Entries))) return
  if (parts.length > 1) throw wrong('parts', parts.length, '1 where a limit counts values')
  if (type === 'settle') throw invalidOption('a limit that counts values takes no reservations')
  const { cost = 1, units = cost } = op as { readonly cost?: number; readonly units?: number }
  if (units !== 1 && type !== 'explain')
    throw wrong('a number of units', units, '1 where a limit counts values')
}
