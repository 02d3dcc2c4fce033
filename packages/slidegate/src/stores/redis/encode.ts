// Writes the script's arguments. The top of driver.lua describes them.

import { CLOCK, IDS, LOOK, MAY_REPEAT, RARE } from '../../ops/op.ts'
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
    const end = endOfRun(requests, first, unusual)
    // Most calls are single requests of cost 1.
    const isPlain = unusual === undefined && end - first === requests.length
    if (!(isPlain && endOfGroup(requests, 0, end) === end && costOf(op) * requests[0]!.count === 1)) {
      encodeGroups(requests, first, end, words)
    }
    first = end
  }
}

/** The end of a run of neighbors with the same limits. */
function endOfRun(requests: readonly Request[], first: number, unusual: Unusual | undefined): number {
  let end = first + 1
  while (end < requests.length && isLike(requests[end]!, requests[first]!, unusual)) end++
  return end
}

/** The end of a run of neighbors that also have the same cost and count. */
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

/** Whether two requests differ only in keys, ids, cost and count. */
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

/** Whether an op equals a waiting request that others may join. */
export function canJoin(
  { op: waiting, nowMs: waitingMs }: Request,
  op: Op,
  nowMs: number | undefined,
): boolean {
  if (waitingMs !== nowMs) return false
  if (op === waiting) return true
  const { key, set } = waiting.parts[0]!
  return isSingle(op) && op.cost === costOf(waiting) && op.parts[0]!.key === key && op.parts[0]!.set === set
}
