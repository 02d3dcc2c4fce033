// Writes the script's arguments. The head of driver.lua describes them.

import { type ConsumeOp, isUsual } from '../../ops/consume.ts'
import { CLOCK, IDS, LOOK, MAY_REPEAT, RARE } from '../../ops/options.ts'
import type { Named, Part } from '../../ops/request.ts'
import { kindOf, type Op, unitsOf } from '../../ops/table.ts'
import { setWords } from './set-words.ts'

/** An op with what its call needs. */
export interface Request {
  readonly op: Op
  /** The time, where it is not the server's. */
  readonly nowMs: number | undefined
  /** Requests to be decided by a consume op: its own count, or that of the equal ones that have joined it. */
  readonly count: number
}

/** The script's arguments: the word of a receipt, if any, then runs of neighbours that differ in little but their keys. */
export function encode(requests: readonly Request[], receipt?: string): string[] {
  const words = receipt === undefined ? [] : [receipt]
  for (let first = 0; first < requests.length; ) {
    const { op, nowMs } = requests[first]!
    const unusual = unusualWords(op)
    const options = (unusual?.options ?? 0) + (nowMs === undefined ? 0 : CLOCK)
    if (options > 0) words.push(`${-options}`)
    if (nowMs !== undefined) words.push(`${nowMs}`)
    words.push(...setWords(op, nowMs))
    if (unusual !== undefined) words.push(...unusual.words)
    first = encodeGroups(requests, first, unusual, words)
  }
  return words
}

/** Writes all that follow against the same limits, in groups of the same cost and count. Returns where they end. */
function encodeGroups(
  requests: readonly Request[],
  first: number,
  unusual: Unusual | undefined,
  words: string[],
): number {
  const place = words.push('') - 1
  let groups = 0
  let next = first
  while (next < requests.length && (next === first || isLike(requests[next]!, requests[first]!, unusual))) {
    const start = next
    const { op, count } = requests[start]!
    const cost = costOf(op)
    const from = words.push('', `${cost}`, `${count}`) - 3
    do {
      const { requestId } = requests[next]!.op as Named
      if (requestId !== undefined) words.push(requestId)
      next++
    } while (
      next < requests.length &&
      requests[next]!.count === count &&
      costOf(requests[next]!.op) === cost &&
      isLike(requests[next]!, requests[start]!, unusual)
    )
    words[from] = `${next - start}`
    groups++
  }
  words[place] = `${groups}`
  // Most calls are one group of equal requests.
  const isAll = unusual === undefined && groups === 1 && first === 0 && next === requests.length
  if (isAll && words[place + 2] === '1' && words[place + 3] === '1') words.length = place
  return next
}

/** Whether two requests differ in nothing but their keys, ids, cost and count. */
function isLike(a: Request, b: Request, unusual: Unusual | undefined): boolean {
  if (a.nowMs !== b.nowMs || a.op.type !== b.op.type || !haveSameSets(a.op.parts, b.op.parts)) return false
  if (kindOf(a.op).keys !== undefined) return false
  const own = unusualWords(a.op)
  if (own === undefined || unusual === undefined) return own === unusual
  return own.options === unusual.options && own.words.every((word, i) => word === unusual.words[i])
}

function haveSameSets(a: readonly Part[], b: readonly Part[]): boolean {
  if (a.length !== b.length) return false
  for (let i = 0; i < a.length; i++) if (a[i]!.set !== b[i]!.set) return false
  return true
}

/** What one request takes, where it is a decision. */
function costOf(op: Op): number {
  return kindOf(op).encode === undefined ? 1 : unitsOf(op)
}

interface Unusual {
  readonly options: number
  readonly words: readonly string[]
}

/** What is unusual about an op. `undefined` for consume without anything else. */
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

/** Whether others may join an op: it is then decided as one with a count. */
export function isJoinable(op: Op): boolean {
  return isSingle(op) && !op.parts[0]!.set.logs.some(({ kind }) => kind.isOneByOne === true)
}

/** Whether an op asks the same as a request of the same key that waits, which others may join. */
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

function isSingle(op: Op): op is ConsumeOp {
  return isUsual(op) && op.count === 1 && op.parts.length === 1
}
