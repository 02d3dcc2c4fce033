import { StoreUnavailableError, show } from '../../errors.ts'
import type { LimitSet } from '../../limits/limit-set.ts'
import type { ConsumeOutcome, Op, Outcome, Part } from '../store.ts'

// What main.lua is given and what it answers; its header has the same in its words.

/** An op with what its call needs. */
export interface Request {
  readonly op: Op
  /** The time, where it is not the server's. */
  readonly nowMs: number | undefined
  /** Requests to be decided by a consume op: its own count, or that of the equal ones that have joined it. */
  readonly count: number
}

/** The waits that the script writes as -1: for ever. */
const NEVER = -1

/** The script's one argument. Neighbours that differ in nothing but their keys are written once. */
export function encode(requests: readonly Request[]): string {
  const sets = new Map<LimitSet, number>()
  const runs: string[] = []
  for (let first = 0; first < requests.length; ) {
    let next = first + 1
    while (next < requests.length && areAlike(requests[first]!, requests[next]!)) next++
    runs.push(`{"times":${next - first},${wordsOf(requests[first]!, sets)}}`)
    first = next
  }
  return `[[${Array.from(sets.keys(), encodedSet).join()}],[${runs.join()}]]`
}

/** Whether two requests differ in nothing but their keys. Asked of those that are frequent; others are written out. */
function areAlike(a: Request, b: Request): boolean {
  return a.count === b.count && a.nowMs === b.nowMs && areEqual(a.op, b.op)
}

/** Whether an op may be decided together with a request of the same key that waits, as one with a count. */
export function canJoin(waiting: Request, op: Op, nowMs: number | undefined): boolean {
  return waiting.nowMs === nowMs && waiting.op.parts[0]!.key === op.parts[0]!.key && areEqual(waiting.op, op)
}

/** Whether both are single requests of the same cost against the same limits. */
function areEqual(a: Op, b: Op): boolean {
  return (
    a.type === 'consume' &&
    b.type === 'consume' &&
    a.cost === b.cost &&
    a.count === 1 &&
    b.count === 1 &&
    a.leaseMs === 0 &&
    b.leaseMs === 0 &&
    a.parts.length === 1 &&
    b.parts.length === 1 &&
    a.parts[0]!.set === b.parts[0]!.set
  )
}

function wordsOf({ op, nowMs, count }: Request, sets: Map<LimitSet, number>): string {
  const now = nowMs === undefined ? '' : `,"now":${nowMs}`
  const head = `"type":"${op.type}","sets":[${numbersOf(op.parts, sets)}]${now}`
  switch (op.type) {
    case 'consume':
      return `${head},"cost":${op.cost},"count":${count}${op.leaseMs > 0 ? `,"lease":${op.leaseMs}` : ''}`
    case 'peek':
      return `${head},"cost":${op.cost},"count":1`
    case 'charge':
      return `${head},"units":${op.units}`
    case 'refund':
      return `${head},"units":${op.units},"at":${op.atMs},"charged":${JSON.stringify(op.charged)}`
    case 'reset':
      return head
  }
}

/** The numbers under which the script knows the sets of the parts. */
function numbersOf(parts: readonly Part[], sets: Map<LimitSet, number>): string {
  return parts
    .map(({ set }) => {
      const known = sets.get(set) ?? sets.size + 1
      sets.set(set, known)
      return known
    })
    .join()
}

const encodedSets = new WeakMap<LimitSet, string>()

function encodedSet(set: LimitSet): string {
  let encoded = encodedSets.get(set)
  if (encoded === undefined) {
    encoded = JSON.stringify(
      set.logs.map(({ kind, shadow, params }) => ({ kind: kind.tag, shadow, ...params })),
    )
    encodedSets.set(set, encoded)
  }
  return encoded
}

/** Reads the outcomes off the reply, one per request and in their order. An error stands for the op that it befell. */
export function decode(requests: readonly Request[], reply: unknown): (Outcome | StoreUnavailableError)[] {
  const numbers: readonly unknown[] = Array.isArray(reply) ? reply : []
  let place = 0
  const next = () => {
    // Some clients are set to hand out integers as text.
    const number = Number(numbers[place++])
    if (!Number.isSafeInteger(number))
      throw new StoreUnavailableError('error', `Redis answered ${show(reply)}`)
    return number
  }
  const serverMs = next()
  return requests.map(({ op, nowMs = serverMs }) => {
    if (op.type === 'reset') return undefined
    const afterMs = next()
    if (afterMs < 0) {
      const reason = numbers[place++]
      return new StoreUnavailableError(
        'state',
        `what is stored of ${show(op.parts[0]!.key)} cannot be used: ${reason}`,
      )
    }
    const atMs = nowMs + afterMs
    switch (op.type) {
      case 'consume':
      case 'peek':
        return consumeOutcome(op.parts, atMs, next)
      case 'refund':
        return { returned: op.parts.flatMap(({ set }) => set.logs.map(next)) }
      default:
        return undefined
    }
  })
}

function consumeOutcome(parts: readonly Part[], atMs: number, next: () => number): ConsumeOutcome {
  const admitted = next()
  const limits = new Array<number>(3 * parts.reduce((sum, { set }) => sum + set.limits.length, 0))
  let first = 0
  for (const { set } of parts) {
    for (const { serves } of set.logs) {
      for (const limit of serves) {
        const place = 3 * (first + limit)
        limits[place] = next()
        const retryAfterMs = next()
        limits[place + 1] = retryAfterMs === NEVER ? Number.POSITIVE_INFINITY : retryAfterMs
        limits[place + 2] = next()
      }
    }
    first += set.limits.length
  }
  return { source: 'store', atMs, admitted, limits, waitMs: 0 }
}
