import { StoreUnavailableError } from '../../errors.ts'
import type { LimitSet } from '../../limits/limit-set.ts'
import type { ConsumeOutcome, Op, Outcome, Part } from '../store.ts'

// What main.lua is given and what it answers; its header has the same in its words.

/** An op with what its call needs: the keys of its logs, and the time where it is not the server's. */
export interface Request {
  readonly op: Op
  readonly keys: readonly string[]
  readonly nowMs: number | undefined
}

/** The waits that the script writes as -1: for ever. */
const NEVER = -1

/** The script's one argument. Neighbours that differ in nothing but their keys are written once. */
export function encode(requests: readonly Request[]): string {
  const sets = new Map<LimitSet, number>()
  const runs: string[] = []
  let last = ''
  let times = 0
  for (const { op, nowMs } of requests) {
    const words = wordsOf(op, nowMs, sets)
    if (words === last) times++
    else {
      if (times > 0) runs.push(`{"times":${times},${last}}`)
      last = words
      times = 1
    }
  }
  runs.push(`{"times":${times},${last}}`)
  return `[[${Array.from(sets.keys(), encodedSet).join()}],[${runs.join()}]]`
}

function wordsOf(op: Op, nowMs: number | undefined, sets: Map<LimitSet, number>): string {
  const now = nowMs === undefined ? '' : `,"now":${nowMs}`
  const head = `"type":"${op.type}","sets":[${numbersOf(op.parts, sets)}]${now}`
  switch (op.type) {
    case 'consume':
      return `${head},"cost":${op.cost},"count":${op.count}${op.leaseMs > 0 ? `,"lease":${op.leaseMs}` : ''}`
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
  if (!Array.isArray(reply))
    throw new StoreUnavailableError('error', 'the script answered with something other than an array')
  let place = 0
  // Some clients are set to hand out integers as text.
  const next = () => Number(reply[place++])
  const serverMs = next()
  return requests.map(({ op, keys, nowMs = serverMs }) => {
    if (op.type === 'reset') return undefined
    const afterMs = next()
    if (afterMs < 0) {
      return new StoreUnavailableError('state', `the value of ${keys[0]} cannot be used: ${reply[place++]}`)
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
  const limits: number[] = []
  for (const { set } of parts) {
    const first = limits.length
    for (let i = 0; i < set.limits.length; i++) limits.push(0, 0, 0)
    for (const { serves } of set.logs) {
      for (const limit of serves) {
        const place = first + 3 * limit
        limits[place] = next()
        const retryAfterMs = next()
        limits[place + 1] = retryAfterMs === NEVER ? Number.POSITIVE_INFINITY : retryAfterMs
        limits[place + 2] = next()
      }
    }
  }
  return { source: 'store', atMs, admitted, limits, waitMs: 0 }
}
