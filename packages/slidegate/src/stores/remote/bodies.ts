// Writes and reads the bodies of calls to a service.
//
//   { version, sets: [{ limiter, limits, additions }], ops: [{ type, parts: [[set, key]], ... }] }
//   { version, outcomes: [...] }     in the order of the ops

import { invalidOption, SlidegateError, show } from '../../errors.ts'
import type { LimitSet } from '../../limits/limit-set.ts'
import type { Result } from '../redis/batcher.ts'
import type { Request } from '../redis/encode.ts'
import type { Op } from '../store.ts'
import { readOp, textOfOp } from './ops.ts'
import { readOutcome, writtenOutcome } from './outcomes.ts'
import { at, type Fields, fieldsIn, listIn } from './reading.ts'
import { type Authorize, declaredIn, declaredInJson, type KnownSets, textOfSet } from './sets.ts'
import { MAX_WORK, REFUSAL, workOf, workOfSet } from './work.ts'

/** Increment this number for each change that the other side could misread. */
export const WIRE_VERSION = 2

export const MAX_OPS = 1024

/** Maximum characters in a body, not counting its last op. */
const MAX_CHARACTERS = 2 ** 18

/** Maximum limits in a body's sets: 16 keys with 64 limits each, plus bans and reservations. */
const MAX_DECLARED = 1280

/** Writes ops into as few bodies as possible. An op that is too large for any body is sent alone and rejected. */
export function bodiesOf(asked: readonly Request[]): Body[] {
  const bodies: Body[] = []
  for (const each of asked) if (!bodies.at(-1)?.add(each)) bodies.push(new Body(each))
  return bodies
}

export class Body {
  readonly asked: Request[] = []
  readonly #places = new Map<LimitSet, number>()
  readonly #sets: string[] = []
  readonly #ops: string[] = []
  #characters = 0
  #declared = 0
  #work = 0

  constructor(first: Request) {
    this.add(first)
  }

  get text(): string {
    return `{"version":${WIRE_VERSION},"sets":[${this.#sets}],"ops":[${this.#ops}]}`
  }

  /** Adds an op, or returns false if the body has no room for it. The first op is always added. */
  add(asked: Request): boolean {
    const { op, count } = asked
    const added = new Set(op.parts.map(({ set }) => set).filter((set) => !this.#places.has(set)))
    let characters = this.#characters
    let declared = this.#declared
    let work = this.#work + workOf(op)
    for (const set of added) {
      characters += textOfSet(set).length
      declared += declaredIn(set)
      work += workOfSet(set)
    }
    const isFull = characters >= MAX_CHARACTERS || declared > MAX_DECLARED || work > MAX_WORK
    if (isFull && this.asked.length > 0) return false
    for (const set of added) this.#places.set(set, this.#sets.push(textOfSet(set)) - 1)
    const text = textOfOp(op, count, (set) => this.#places.get(set)!)
    this.#ops.push(text)
    this.asked.push(asked)
    this.#characters = characters + text.length
    this.#declared = declared
    this.#work = work
    return true
  }
}

/** Checked first, because the same fields may mean something else in another version. */
function checkVersion(value: unknown, what: 'body' | 'answer'): void {
  if (typeof value !== 'object' || value === null) return
  const { version } = value as Fields
  if (version === WIRE_VERSION) return
  throw invalidOption(
    `the ${what} has version ${show(version)} of the store format, but this side supports version ${WIRE_VERSION}; use the same version of slidegate in the program and the service`,
    version,
  )
}

/** Returns the ops, with an error in place of each invalid op. Throws the first set's error if all sets are invalid. */
export function readBody(value: unknown, known: KnownSets, authorize: Authorize): readonly (Op | Error)[] {
  checkVersion(value, 'body')
  const { sets, ops } = fieldsIn(value, 'the body', ['version', 'sets', 'ops'])
  const budget = new Budget()
  const read = listIn(sets, 'sets', 1, MAX_OPS).map((each, i) =>
    budget.tried(`sets[${i}]`, () => {
      // Checked before any limit is created.
      budget.spend('limits', declaredInJson(each))
      const set = known.of(each, authorize)
      budget.spend('work', workOfSet(set))
      return set
    }),
  )
  const first = read[0]!
  if (first instanceof Error && read.every((each) => each instanceof Error)) throw first
  budget.readOps()
  return listIn(ops, 'ops', 1, MAX_OPS).map((each, i) =>
    budget.tried(`ops[${i}]`, () => {
      const op = readOp(each, read)
      budget.spend('work', workOf(op))
      return op
    }),
  )
}

const MOST = { limits: MAX_DECLARED, work: MAX_WORK }

/** Bounds for one body. If a bound is exceeded, the remaining sets or ops are rejected unread. */
class Budget {
  readonly #spent = { limits: 0, work: 0 }
  #usedUp: SlidegateError | undefined
  /** Errors whose messages already contain a position. An op with an invalid set gets that set's error. */
  readonly #placed = new Set<unknown>()

  tried<Value>(place: string, read: () => Value): Value | Error {
    if (this.#usedUp !== undefined) return this.#usedUp
    try {
      return read()
    } catch (error) {
      if (!(error instanceof SlidegateError) || this.#placed.has(error)) return error as Error
      const placed = new SlidegateError(error.code, `${place}: ${error.message}`, error.value)
      this.#placed.add(placed)
      this.#add('work', REFUSAL)
      return placed
    }
  }

  /** Call this before reading ops. An op can still be decided if its sets were read before a bound was exceeded. */
  readOps(): void {
    this.#usedUp = undefined
  }

  spend(what: 'limits' | 'work', units: number): void {
    this.#add(what, units)
    if (this.#usedUp !== undefined) throw this.#usedUp
  }

  #add(what: 'limits' | 'work', units: number): void {
    this.#spent[what] += units
    if (this.#spent[what] <= MOST[what]) return
    const given = `the body's total for ${what} is ${this.#spent[what]}`
    this.#usedUp = invalidOption(`${given}; it must be at most ${MOST[what]}: send several bodies`)
    this.#placed.add(this.#usedUp)
  }
}

/** The answer to a body, as JSON. */
export interface StoreResponse {
  readonly version: number
  readonly outcomes: unknown[]
}

export function answerOf(results: readonly (Result | Error)[]): StoreResponse {
  return { version: WIRE_VERSION, outcomes: results.map(writtenOutcome) }
}

export function readAnswer(asked: readonly Request[], value: unknown): Result[] {
  checkVersion(value, 'answer')
  const { outcomes } = fieldsIn(value, 'the answer', ['version', 'outcomes'])
  const all = listIn(outcomes, 'outcomes', asked.length)
  return asked.map(({ op, count }, i) => at(`outcomes[${i}]`, () => readOutcome(op, count, all[i])))
}
