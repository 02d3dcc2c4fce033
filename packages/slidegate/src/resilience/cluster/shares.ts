import { outcomeAt } from '../../stores/outcome.ts'
import type { Call, Op, Outcome, Part, Store } from '../../stores/store.ts'

/** Those parts of an op that live in one domain. */
export interface Share<Asked extends Op = Op> {
  readonly op: Asked
  /** Which parts of the whole op these are. */
  readonly places: readonly number[]
}

/** What a share was told. */
export interface Told<Asked extends Op = Op> {
  readonly share: Share<Asked>
  /** As the store has told it: of all requests that were decided together. This one stands at `position` of them. */
  readonly together: Outcome
  readonly position: number
  /** Of this one. */
  readonly outcome: Outcome
}

/** Sends all shares at once. Calls back when all are settled, with the errors of those that failed. */
export function askAll<Asked extends Op>(
  store: Store,
  shares: readonly Share<Asked>[],
  call: Call,
  whenDone: (told: readonly Told<Asked>[], errors: readonly unknown[]) => void,
): void {
  const told: Told<Asked>[] = []
  const errors: unknown[] = []
  let left = shares.length
  const done = () => {
    left--
    if (left === 0) whenDone(told, errors)
  }
  for (const share of shares) {
    let isSettled = false
    const asked: Call = {
      get isSettled() {
        return isSettled || call.isSettled
      },
      resolve(outcomes, position) {
        if (isSettled) return
        isSettled = true
        const together = outcomes[0]
        told.push({ share, together, position, outcome: outcomeAt(share.op, together, position) })
        done()
      },
      reject(reason) {
        if (isSettled) return
        isSettled = true
        errors.push(reason)
        done()
      },
    }
    try {
      store.apply([share.op], asked)
    } catch (reason) {
      asked.reject(reason)
    }
  }
}

/** By part, what shares say of each in a row. */
export function byPart<T>(
  parts: readonly Part[],
  rows: readonly (readonly [places: readonly number[], row: readonly T[]])[],
  sizeOf: (part: Part) => number,
): (readonly T[] | undefined)[] {
  const cells = new Array<readonly T[] | undefined>(parts.length).fill(undefined)
  for (const [places, row] of rows) {
    let from = 0
    for (const place of places) {
      const end = from + sizeOf(parts[place]!)
      cells[place] = row.slice(from, end)
      from = end
    }
  }
  return cells
}

/** The same in the order of the parts, those of which nothing is said being filled. */
export function joined<T>(
  parts: readonly Part[],
  rows: readonly (readonly [places: readonly number[], row: readonly T[]])[],
  sizeOf: (part: Part) => number,
  filling: T,
): T[] {
  return byPart(parts, rows, sizeOf).flatMap(
    (cell, place) => cell ?? new Array<T>(sizeOf(parts[place]!)).fill(filling),
  )
}

export function logsIn({ set }: Part): number {
  return set.logs.length
}

export function limitsIn({ set }: Part): number {
  return set.limits.length
}

export function numbersIn({ set }: Part): number {
  return 3 * set.limits.length
}
