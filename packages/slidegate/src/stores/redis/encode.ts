// Writes the script's arguments: see driver.lua. For the words (arguments) of a log, see the .lua file of its kind.

import type { LimitSet, Log } from '../../limits/limit-set.ts'
import { declaredName, mostOf } from '../../limits/override.ts'
import { CLOCK, IDS, LOOK, MAY_REPEAT, RARE } from '../../ops/op.ts'
import type { Named, Part } from '../../ops/request.ts'
import { isUsual, kindOf, type Op, unitsOf } from '../../ops/table.ts'

/** An op and everything that is needed to send it. */
export interface Request {
  readonly op: Op
  /** Replaces the server's time. */
  readonly nowMs: number | undefined
  /** Number of requests that share this op. */
  readonly count: number
}

/**
 * Appends the script's arguments. Adjacent ops that differ only in keys, ids, cost and count share their other words.
 */
export function encode(requests: readonly Request[], words: string[]): void {
  for (let first = 0; first < requests.length; ) {
    const { op, nowMs } = requests[first]!
    const unusual = unusualWords(op)
    const options = (unusual?.options ?? 0) + (nowMs === undefined ? 0 : CLOCK)
    if (options > 0) words.push(`${-options}`)
    if (nowMs !== undefined) words.push(`${nowMs}`)
    const setWords = setWordsOf(op, nowMs)
    for (let i = 0; i < setWords.length; i++) words.push(setWords[i]!)
    if (unusual !== undefined) words.push(...unusual.words)
    let end = first + 1
    while (end < requests.length && isLike(requests[end]!, requests[first]!, unusual)) end++
    // In most calls, each op is a single request with a cost of 1, and no groups are needed.
    const isPlain = unusual === undefined && end - first === requests.length
    if (!(isPlain && endOfGroup(requests, 0, end) === end && costOf(op) * requests[0]!.count === 1)) {
      encodeGroups(requests, first, end, words)
    }
    first = end
  }
}

function endOfGroup(requests: readonly Request[], first: number, end: number): number {
  const { op, count } = requests[first]!
  const cost = costOf(op)
  let next = first + 1
  while (next < end && requests[next]!.count === count && costOf(requests[next]!.op) === cost) next++
  return next
}

function encodeGroups(requests: readonly Request[], first: number, end: number, words: string[]): void {
  const place = words.push('') - 1
  let groups = 0
  for (let start = first; start < end; groups++) {
    const next = endOfGroup(requests, start, end)
    const { op, count } = requests[start]!
    words.push(`${next - start}`, `${costOf(op)}`, `${count}`)
    for (; start < next; start++) {
      const { requestId } = requests[start]!.op as Named
      if (requestId !== undefined) words.push(requestId)
    }
  }
  words[place] = `${groups}`
}

function isLike(a: Request, b: Request, unusual: Unusual | undefined): boolean {
  if (a.nowMs !== b.nowMs || a.op.type !== b.op.type || !haveSameSets(a.op.parts, b.op.parts)) return false
  if (kindOf(a.op).keys !== undefined) return false
  const own = unusualWords(a.op)
  if (own === undefined || unusual === undefined) return own === unusual
  return own.options === unusual.options && own.words.every((word, i) => word === unusual.words[i])
}

/** The units that a request costs, or 1 if the op isn't a decision. */
function costOf(op: Op): number {
  return kindOf(op).encode === undefined ? 1 : unitsOf(op)
}

interface Unusual {
  readonly options: number
  readonly words: readonly string[]
}

/** The op's options and their words, or `undefined` for a usual op. */
function unusualWords(op: Op): Unusual | undefined {
  if (isUsual(op)) return undefined
  const kind = kindOf(op)
  const { requestId, mayRepeat } = op as Named
  const words: string[] = []
  let options = (requestId === undefined ? 0 : IDS) + (mayRepeat ? MAY_REPEAT : 0)
  if (kind.effect === 'look') options += LOOK
  options += kind.encode?.(op, words) ?? RARE
  // For the JSON of an op that isn't a decision, see rare.lua.
  if (kind.encode === undefined) {
    const { parts, requestId, ...fields } = op as Op & Named
    words.push(JSON.stringify({ ...fields, isLook: kind.effect === 'look', ...kind.json?.(op) }))
  }
  return { options, words }
}

/** The kinds' tags, in the order of the kinds' numbers, which start at 1. */
const KINDS = 'wtfczxeb'
/** The offset of the first limit in a log's words, by kind number minus 1. */
const FIRST_LIMIT = [2, 4, 3, 4, 3, 2, 2]
/** The script's number for reservation entries: see entry-window.lua. */
const RESERVATION = 4

/** A log's code is its kind's number, plus flags, plus multiples of the `PER_` values. See driver.lua. */
const SHADOW = 16
const MORE = 32
const PER_WORD = 64
const PER_OVERRIDE = 65_536

/** A limit's position is its kind's number plus multiples of these values. See override.lua. */
const PER_PLACE = 65_536
const PER_STEP = 16

const NO_LOGS: readonly string[] = ['0']

type PartSet = Pick<Part, 'set'>

/** Words that later ops can reuse. The key is the first set of the op that they were last written for. */
const known = new WeakMap<LimitSet, { parts: readonly PartSet[]; words: readonly string[] }>()

function setWordsOf(op: Op, nowMs: number | undefined): readonly string[] {
  if (kindOf(op).keys === 'index') return NO_LOGS
  const { parts } = op
  const first = parts[0]!.set
  const last = known.get(first)
  if (last !== undefined && haveSameSets(last.parts, parts)) return last.words
  const words = wordsOf(parts, nowMs ?? Date.now())
  const isTimed = parts.some(({ set }) => set.logs.some(({ kind }) => kind.hasTimedWords))
  if (!isTimed) known.set(first, { parts: parts.map(({ set }) => ({ set })), words })
  return words
}

function haveSameSets(a: readonly PartSet[], b: readonly PartSet[]): boolean {
  if (a.length !== b.length) return false
  for (let i = 0; i < a.length; i++) if (a[i]!.set !== b[i]!.set) return false
  return true
}

function wordsOf(parts: readonly Part[], nowMs: number): string[] {
  const words: string[] = []
  let names = ''
  let overridable = 0
  let logs = parts.reduce((sum, { set }) => sum + set.logs.length, 0)
  for (const { set } of parts) {
    set.logs.forEach((log, i) => {
      const own = logWords(log, i, nowMs)
      const place = words.length + 1
      const code = numberOf(log) + (log.shadow ? SHADOW : 0) + (--logs > 0 ? MORE : 0) + own.length * PER_WORD
      if (set.isOverridable && log.role === 'count') names += namesIn(set, log, place)
      words.push(`${code}`, ...own.map(String))
    })
    if (set.isOverridable) {
      overridable++
      names += '|'
    }
  }
  words[0] = `${Number(words[0] ?? 0) + overridable * PER_OVERRIDE}`
  return overridable > 0 ? [...words, names] : words
}

function logWords({ kind, role, params }: Log, place: number, nowMs: number): readonly number[] {
  if (role === 'reservations') return [params.windows[0]!, RESERVATION]
  const words = kind.words(params, nowMs)
  return role === 'ban' ? [place, ...words] : words
}

function numberOf({ kind }: Log): number {
  return KINDS.indexOf(kind.tag) + 1
}

/** The limits' names and positions, and the maximums for overrides: see override.lua. */
function namesIn({ limits }: LimitSet, log: Log, place: number): string {
  const width = log.kind.tag === 'w' ? 2 : 1
  const number = numberOf(log)
  const named = log.serves.map((served, i) => {
    const limit = limits[served]!
    const where = place * PER_PLACE + (FIRST_LIMIT[number - 1]! + width * i) * PER_STEP + number
    const numbers = ` ${where} ${mostOf(limit)}`
    return `/${declaredName(limit)}${numbers}${limits.length === 1 ? `/${numbers}` : ''}`
  })
  return named.join('')
}
