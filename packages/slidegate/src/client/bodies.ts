import { invalidOption, type SlidegateError } from '../errors.ts'
import type { LimitSet } from '../limits/limit-set.ts'
import type { Request } from '../stores/redis/protocol.ts'
import type { Result } from '../stores/redis/transport.ts'
import type { Op } from '../stores/store.ts'
import { readOp, textOfOp, workOf } from './ops.ts'
import { readOutcome, writtenOutcome } from './outcomes.ts'
import { at, fieldsIn, listIn, wrong } from './reading.ts'
import { type Authorize, declaredIn, type KnownSets, textOfSet } from './sets.ts'

// What travels: ops in one direction, outcomes in the other, both in the same order.
//
//   { version, sets: [{ limiter, limits, additions }], ops: [{ type, parts: [[set, key]], ... }] }
//   { version, outcomes: [...] }

const VERSION = 1

/** Ops of a body. */
export const MAX_OPS = 1024

/** Characters after which what is left goes into a body of its own. */
const MAX_CHARACTERS = 2 ** 18

/** The same for what ops take to be decided, so that no body holds up a service for long, */
const MAX_WORK = 2 ** 14

/** and for the limits that sets are made of. What one op needs more is allowed for. */
const MAX_DECLARED = 2 ** 12

/** An op, and how many requests it decides. */
export type Asked = Pick<Request, 'op' | 'count'>

/** Ops that are asked in one body. */
export interface Body {
  readonly text: string
  readonly asked: readonly Asked[]
}

/** All that is asked, in as few bodies as it fits. */
export function bodiesOf(asked: readonly Asked[]): Body[] {
  const bodies: Body[] = []
  for (let first = 0; first < asked.length; ) {
    const places = new Map<LimitSet, number>()
    const sets: string[] = []
    const ops: string[] = []
    let characters = 0
    let work = 0
    let declared = 0
    const placeOf = (set: LimitSet) => {
      const known = places.get(set)
      if (known !== undefined) return known
      const text = textOfSet(set)
      characters += text.length
      declared += declaredIn(set)
      places.set(set, sets.length)
      return sets.push(text) - 1
    }
    let next = first
    do {
      const { op, count } = asked[next]!
      const text = textOfOp(op, count, placeOf)
      characters += text.length
      work += workOf(op)
      ops.push(text)
      next++
    } while (next < asked.length && characters < MAX_CHARACTERS && work < MAX_WORK && declared < MAX_DECLARED)
    const text = `{"version":${VERSION},"sets":[${sets}],"ops":[${ops}]}`
    bodies.push({ text, asked: asked.slice(first, next) })
    first = next
  }
  return bodies
}

/**
 * What is asked; of an op that is not in order what is wrong: it is refused, and those that travel with it are not. They may
 * be asked by others, who have no part in what one of them has brought.
 *
 * @throws {SlidegateError} for what is no body, or has no set that is in order, and what `authorize` throws
 */
export function readBody(value: unknown, known: KnownSets, authorize: Authorize): readonly (Op | Error)[] {
  const { version, sets, ops } = fieldsIn(value, 'the body', ['version', 'sets', 'ops'])
  if (version !== VERSION) throw wrong('the version', version, `${VERSION}: this service knows no other`)
  let declared = 0
  const read = listIn(sets, 'sets', 1, MAX_OPS).map((each, i) =>
    tried(`sets[${i}]`, () => {
      if (declared >= 2 * MAX_DECLARED) throw tooMuch('of limits')
      const set = known.of(each, authorize)
      declared += declaredIn(set)
      return set
    }),
  )
  const first = read[0]!
  if (first instanceof Error && read.every((each) => each instanceof Error)) throw first
  let work = 0
  return listIn(ops, 'ops', 1, MAX_OPS).map((each, i) =>
    tried(`ops[${i}]`, () => {
      if (work >= MAX_WORK) throw tooMuch('to be decided')
      const op = readOp(each, read)
      work += workOf(op)
      return op
    }),
  )
}

function tooMuch(what: string): SlidegateError {
  return invalidOption(`there is too much ${what} in one body; send several`)
}

function tried<Value>(place: string, read: () => Value): Value | Error {
  try {
    return at(place, read)
  } catch (error) {
    return error as Error
  }
}

/** What is sent back, as JSON. */
export interface StoreAnswer {
  readonly version: number
  readonly outcomes: unknown[]
}

export function answerOf(results: readonly (Result | Error)[]): StoreAnswer {
  return { version: VERSION, outcomes: results.map(writtenOutcome) }
}

/** @throws {SlidegateError} for what is no answer to this */
export function readAnswer(asked: readonly Asked[], value: unknown): Result[] {
  const { version, outcomes } = fieldsIn(value, 'the answer', ['version', 'outcomes'])
  if (version !== VERSION) throw wrong('the version', version, `${VERSION}`)
  const told = listIn(outcomes, 'outcomes', asked.length, asked.length)
  return asked.map(({ op, count }, i) => at(`outcomes[${i}]`, () => readOutcome(op, count, told[i])))
}
