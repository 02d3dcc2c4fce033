// Writes the script's arguments, and estimates how long they take in Redis. The top of driver.lua describes them.

import type { Entries } from '../../limits/limit.ts'
import { entriesOf } from '../../limits/limit-set.ts'
import { CLOCK, IDS, LOOK, MAY_REPEAT, RARE, type Work } from '../../ops/op.ts'
import type { Named } from '../../ops/request.ts'
import { isSingle, isUsual, kindOf, type Op, unitsOf } from '../../ops/table.ts'
import { haveSameSets, setWordsOf } from './set-words.ts'

/** An op with everything that its call needs. */
export interface Request {
  readonly op: Op
  /** The time to use instead of the server's. */
  readonly nowMs: number | undefined
  /** How many requests a consume op decides, including those that joined it. */
  readonly count: number
}

/** Appends the script's arguments. Neighbors that differ only in keys, ids, cost and count form a run. */
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
    // Most calls are single requests of cost 1.
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

/** The units of a request, if it is a decision. */
function costOf(op: Op): number {
  return kindOf(op).encode === undefined ? 1 : unitsOf(op)
}

interface Unusual {
  readonly options: number
  readonly words: readonly string[]
}

/** The options of an op and their words. `undefined` for the usual op. */
function unusualWords(op: Op): Unusual | undefined {
  if (isUsual(op)) return undefined
  const kind = kindOf(op)
  const { requestId, mayRepeat } = op as Named
  const words: string[] = []
  let options = (requestId === undefined ? 0 : IDS) + (mayRepeat ? MAY_REPEAT : 0)
  if (kind.effect === 'look') options += LOOK
  options += kind.encode?.(op, words) ?? RARE
  if (kind.encode === undefined) words.push(jsonOf(op))
  return { options, words }
}

/** The JSON of an op other than a decision: see rare.lua. */
function jsonOf(op: Op): string {
  const { parts, requestId, ...fields } = op as Op & Named
  const { effect, json } = kindOf(op)
  return JSON.stringify({ ...fields, isLook: effect === 'look', ...json?.(op) })
}

/** Whether others may join an op, which is then decided as one with a count. */
export function isJoinable(op: Op): boolean {
  return isSingle(op) && !op.parts[0]!.set.logs.some(({ kind }) => kind.isOneByOne === true)
}

export function canJoin(waiting: Request, op: Op, nowMs: number | undefined): boolean {
  if (waiting.nowMs !== nowMs) return false
  if (op === waiting.op) return true
  const { key, set } = waiting.op.parts[0]!
  return (
    isSingle(op) && op.cost === costOf(waiting.op) && op.parts[0]!.key === key && op.parts[0]!.set === set
  )
}

/** Maximum weight of a call, so that no script blocks Redis for long. */
export const MAX_WEIGHT = 128

/** Units that a log of entries writes in the time of a usual op. */
const UNITS_PER_OP = 100

/** An op with up to this many logs takes as long as the usual one. */
const LOGS_PER_OP = 4

/** The weight of an op: its time relative to the usual op, at most {@link MAX_WEIGHT}. */
export function weightOf(op: Op): number {
  const { work } = kindOf(op)
  // An explain searches for each time that it reports. A page has hundreds of overrides, and an explain may list hundreds of
  // charges.
  let weight = work === 'search' || work === 'page' ? MAX_WEIGHT / 8 : 1
  if ('charges' in op && op.charges !== undefined) weight = MAX_WEIGHT
  let logs = 0
  for (const { set } of op.parts) {
    logs += set.logs.length
    if (set.keeps.size > 0) for (const log of set.logs) weight += entriesWeight(op, entriesOf(log))
  }
  return Math.min(weight + Math.ceil(logs / LOGS_PER_OP) - 1, MAX_WEIGHT)
}

const WRITES: readonly Work[] = ['take', 'write', 'find']

function entriesWeight(op: Op, are: Entries | undefined): number {
  const { work } = kindOf(op)
  if (are === undefined) return 0
  // A refund rewrites a stream.
  if (work === 'read' || (work === 'take' && are === 'record')) return MAX_WEIGHT
  return WRITES.includes(work) ? Math.floor(unitsOf(op) / UNITS_PER_OP) : 0
}
