import type { ConsumeOp, Named, Op, OverrideOp, Part, SettleOp } from '../store.ts'
import { setWords } from './set-words.ts'

// What main.lua is given. Its header has the same in its words.

/** An op with what its call needs. */
export interface Request {
  readonly op: Op
  /** The time, where it is not the server's. */
  readonly nowMs: number | undefined
  /** Requests to be decided by a consume op: its own count, or that of the equal ones that have joined it. */
  readonly count: number
}

/** What is unusual about an op. */
const LOOK = 1
const FORCED = 2
const WAITING = 4
const MAY_REPEAT = 8
const IDS = 16
const LEASE = 32
const RESERVATION_NAME = 64
const EXPLAIN = 128
const CHARGES = 256
const HOLD = 512
const RARE = 1024
const CLOCK = 2048

/** Ops that write nothing. */
const LOOKS: readonly Op['type'][] = ['peek', 'list', 'explain', 'overrides']

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
  if (a.op.type === 'overrides' || a.op.type === 'override') return false
  const own = unusualWords(a.op)
  if (own === undefined || unusual === undefined) return own === unusual
  return own.options === unusual.options && own.words.every((word, i) => word === unusual.words[i])
}

function haveSameSets(a: readonly Part[], b: readonly Part[]): boolean {
  if (a.length !== b.length) return false
  for (let i = 0; i < a.length; i++) if (a[i]!.set !== b[i]!.set) return false
  return true
}

function costOf(op: Op): number {
  if (op.type === 'charge' || op.type === 'extend' || op.type === 'release') return op.units
  return 'cost' in op ? op.cost : 1
}

interface Unusual {
  readonly options: number
  readonly words: readonly string[]
}

/** What is unusual about an op. `undefined` for consume without anything else. */
function unusualWords(op: Op): Unusual | undefined {
  const { requestId, mayRepeat } = op as Named
  if (op.type === 'consume' && requestId === undefined && op.leaseMs === 0 && !isPersonal(op))
    return undefined
  const words: string[] = []
  let options = (requestId === undefined ? 0 : IDS) + (mayRepeat ? MAY_REPEAT : 0)
  if (LOOKS.includes(op.type)) options += LOOK
  switch (op.type) {
    case 'consume': {
      const { leaseMs, isWaiting, reservation } = op
      if (isWaiting) options += WAITING
      if (leaseMs > 0) {
        options += LEASE
        words.push(`${leaseMs}`)
      }
      if (reservation !== undefined) {
        options += RESERVATION_NAME
        words.push(reservation)
      }
      break
    }
    case 'peek':
      break
    case 'charge':
      options += FORCED
      break
    case 'explain':
      options += EXPLAIN
      if (op.charges !== undefined) {
        options += CHARGES
        words.push(`${op.charges}`)
      }
      break
    case 'extend':
    case 'release':
      options += LOOK + HOLD
      words.push(op.type === 'extend' ? '1' : '0')
      break
    default:
      options += RARE
      words.push(JSON.stringify(rareOp(op)))
  }
  return { options, words }
}

/** The JSON of a rare op: see rare.lua. */
function rareOp(
  op: Exclude<Op, { type: 'consume' | 'peek' | 'charge' | 'explain' | 'extend' | 'release' }>,
): object {
  const { parts, requestId, ...fields } = op as typeof op & Named
  const common = { ...fields, isLook: LOOKS.includes(op.type) }
  switch (op.type) {
    case 'settle':
      return { ...common, ...perLog(op) }
    case 'override':
      return { ...common, given: givenOf(op), keys: keysOf(op) }
    case 'overrides':
      return { ...common, keys: 1 }
    default:
      return common
  }
}

/** Of each log of all parts the number of its part, from 1, and when that was charged. */
function perLog({ parts, instants }: SettleOp): { parts: number[]; instants: number[] } {
  return {
    parts: parts.flatMap(({ set }, part) => set.logs.map(() => part + 1)),
    instants: parts.flatMap(({ set }, part) => set.logs.map(() => instants[part]!)),
  }
}

function givenOf({ parts, given }: OverrideOp): string[] | undefined {
  return given?.filter((_, part) => parts[part]!.set.isOverridable)
}

function keysOf({ parts }: Op): number {
  return parts.reduce((sum, { set }) => sum + set.logs.length + (set.isOverridable ? 2 : 0), 0)
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
  if (op.type !== 'consume' || op.requestId !== undefined) return false
  return op.count === 1 && op.leaseMs === 0 && op.parts.length === 1 && !isPersonal(op)
}

/** Whether it brings what no other does. */
function isPersonal({ isWaiting, reservation }: ConsumeOp): boolean {
  return isWaiting === true || reservation !== undefined
}
