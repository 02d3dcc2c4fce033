// The bodies of calls to a service: written, and read with bounds.

import { invalidOption, SlidegateError, show } from '../../errors.ts'
import type { LimitSet } from '../../limits/limit-set.ts'
import type { Result } from '../redis/batcher.ts'
import type { Request } from '../redis/encode.ts'
import type { Op } from '../store.ts'
import { readOp, textOfOp } from './ops.ts'
import { readOutcome, writtenOutcome } from './outcomes.ts'
import { at, type Fields, fieldsIn, listIn } from './reading.ts'
import { type Authorize, declaredIn, type KnownSets, textOfSet } from './sets.ts'
import { MAX_WORK, REFUSAL, workOf, workOfSet } from './work.ts'

// What travels: ops in one direction, outcomes in the other, both in the same order.
//
//   { version, sets: [{ limiter, limits, additions }], ops: [{ type, parts: [[set, key]], ... }] }
//   { version, outcomes: [...] }

/** Rises with each change that either side would misread. 1: before overrides became records beside a key's logs. */
export const WIRE_VERSION = 2

/** Ops of a body. */
export const MAX_OPS = 1024

/** Characters of a body. Those of its last op may be more. */
const MAX_CHARACTERS = 2 ** 18

/** Limits in the sets of a body: 16 keys with 64 limits, and some room for their bans and reservations. */
const MAX_DECLARED = 1280

/** An op, and how many requests it decides. */
export type Asked = Pick<Request, 'op' | 'count'>

/** Ops that are asked in one body. */
export interface Body {
  readonly text: string
  readonly asked: readonly Asked[]
}

/** Writes ops into as few bodies as possible. An op that is too much for any body goes alone, and is refused. */
export function bodiesOf(asked: readonly Asked[]): Body[] {
  const bodies: Body[] = []
  for (let first = 0; first < asked.length; ) {
    const draft = new Draft()
    let next = first
    do draft.add(asked[next++]!)
    while (next < asked.length && draft.hasRoomFor(asked[next]!))
    bodies.push({ text: draft.text(), asked: asked.slice(first, next) })
    first = next
  }
  return bodies
}

/** A body while it is written. */
class Draft {
  readonly #places = new Map<LimitSet, number>()
  readonly #sets: string[] = []
  readonly #ops: string[] = []
  #characters = 0
  #work = 0
  #declared = 0

  hasRoomFor({ op }: Asked): boolean {
    let characters = this.#characters
    let declared = this.#declared
    let work = this.#work + workOf(op)
    for (const set of new Set(op.parts.map((part) => part.set))) {
      if (this.#places.has(set)) continue
      characters += textOfSet(set).length
      declared += declaredIn(set)
      work += workOfSet(set)
    }
    return characters < MAX_CHARACTERS && declared <= MAX_DECLARED && work <= MAX_WORK
  }

  add({ op, count }: Asked): void {
    const text = textOfOp(op, count, (set) => this.#placeOf(set))
    this.#characters += text.length
    this.#work += workOf(op)
    this.#ops.push(text)
  }

  text(): string {
    return `{"version":${WIRE_VERSION},"sets":[${this.#sets}],"ops":[${this.#ops}]}`
  }

  #placeOf(set: LimitSet): number {
    const known = this.#places.get(set)
    if (known !== undefined) return known
    const text = textOfSet(set)
    this.#characters += text.length
    this.#declared += declaredIn(set)
    this.#work += workOfSet(set)
    this.#places.set(set, this.#sets.length)
    return this.#sets.push(text) - 1
  }
}

/** Before anything else is read: another version may mean something else by the same fields. */
function checkVersion(value: unknown, what: 'body' | 'answer'): void {
  if (typeof value !== 'object' || value === null) return
  const { version } = value as Fields
  if (version === WIRE_VERSION) return
  throw invalidOption(
    `the ${what} is in version ${show(version)} of the store format, but this side speaks version ${WIRE_VERSION}; use the same version of slidegate in the program and the service`,
    version,
  )
}

/**
 * What is asked; of an op that is not in order what is wrong: it is refused, and those that travel with it are not. They may
 * be asked by others, who have no part in what one of them has brought.
 *
 * @throws {SlidegateError} for what is no body, or has no set that is in order, and what `authorize` throws
 */
export function readBody(value: unknown, known: KnownSets, authorize: Authorize): readonly (Op | Error)[] {
  checkVersion(value, 'body')
  const { sets, ops } = fieldsIn(value, 'the body', ['version', 'sets', 'ops'])
  const budget = new Budget()
  const read = listIn(sets, 'sets', 1, MAX_OPS).map((each, i) =>
    budget.tried(`sets[${i}]`, () => {
      // Before any of it is made.
      budget.declare(declaredIn(each))
      const set = known.of(each, authorize)
      budget.work(workOfSet(set))
      return set
    }),
  )
  const first = read[0]!
  if (first instanceof Error && read.every((each) => each instanceof Error)) throw first
  budget.readOps()
  return listIn(ops, 'ops', 1, MAX_OPS).map((each, i) =>
    budget.tried(`ops[${i}]`, () => {
      const op = readOp(each, read)
      budget.work(workOf(op))
      return op
    }),
  )
}

/** The bounds of one body. Once one is reached, the sets, or ops, that follow are refused unread. */
class Budget {
  #declared = 0
  #work = 0
  #usedUp: SlidegateError | undefined
  /** Errors that say where they were found. An op with a set that was refused is refused by the same one. */
  readonly #placed = new Set<unknown>()

  tried<Value>(place: string, read: () => Value): Value | Error {
    if (this.#usedUp !== undefined) return this.#usedUp
    try {
      return read()
    } catch (error) {
      if (!(error instanceof SlidegateError) || this.#placed.has(error)) return error as Error
      const placed = new SlidegateError(error.code, `${place}: ${error.message}`, error.value)
      this.#placed.add(placed)
      this.#work += REFUSAL
      if (this.#work > MAX_WORK) this.#usedUp = this.#tooMuch('work', this.#work, MAX_WORK)
      return placed
    }
  }

  /** Ops on the sets that were read may still be decided. */
  readOps(): void {
    this.#usedUp = undefined
  }

  declare(limits: number): void {
    this.#declared += limits
    this.#check('limits', this.#declared, MAX_DECLARED)
  }

  work(units: number): void {
    this.#work += units
    this.#check('work', this.#work, MAX_WORK)
  }

  #check(what: string, given: number, most: number): void {
    if (given <= most) return
    this.#usedUp = this.#tooMuch(what, given, most)
    throw this.#usedUp
  }

  #tooMuch(what: string, given: number, most: number): SlidegateError {
    const error = invalidOption(
      `the body has ${what} of ${given}; it must be at most ${most}: send several bodies`,
    )
    this.#placed.add(error)
    return error
  }
}

/** What is sent back, as JSON. */
export interface StoreAnswer {
  readonly version: number
  readonly outcomes: unknown[]
}

export function answerOf(results: readonly (Result | Error)[]): StoreAnswer {
  return { version: WIRE_VERSION, outcomes: results.map(writtenOutcome) }
}

/** @throws {SlidegateError} for what is no answer to this */
export function readAnswer(asked: readonly Asked[], value: unknown): Result[] {
  checkVersion(value, 'answer')
  const { outcomes } = fieldsIn(value, 'the answer', ['version', 'outcomes'])
  const told = listIn(outcomes, 'outcomes', asked.length, asked.length)
  return asked.map(({ op, count }, i) => at(`outcomes[${i}]`, () => readOutcome(op, count, told[i])))
}
