// Splits an op whose keys live on several servers, and sends each its part.

import type { Debit, Part } from '../../ops/request.ts'
import { kindOf, OPS, type Op, type Outcome } from '../../ops/table.ts'
import { send } from '../../stores/call.ts'
import { outcomeAt } from '../../stores/outcome.ts'
import type { Call, Store } from '../../stores/store.ts'

/** Those parts of an op that live in one domain. */
export interface Share<Asked extends Op = Op> {
  readonly op: Asked
  /** Which parts of the whole op these are. */
  readonly places: readonly number[]
}

/** The fields of each op that have a value per part, or per log. */
const SPLIT = new Map(
  Object.entries(OPS).map(([type, { fields }]) => {
    const named = Object.entries(fields)
    return [
      type,
      named
        .filter(([, field]) => field.includes('Per'))
        .map(([name, field]) => [name, field.includes('PerLog')] as const),
    ]
  }),
)

/** The parts of each domain, as an op of their own. */
export function sharesOf<Asked extends Op>(op: Asked, domainOf: (part: Part) => number): Share<Asked>[] {
  const places = new Map<number, number[]>()
  op.parts.forEach((part, place) => {
    const domain = domainOf(part)
    const known = places.get(domain)
    if (known === undefined) places.set(domain, [place])
    else known.push(place)
  })
  const { forServer } = kindOf(op)
  const { debits } = op as { readonly debits?: readonly Debit[] }
  const shares: Share<Asked>[] = []
  for (const ofDomain of places.values()) {
    const share = shareOf(op, ofDomain)
    const asked = forServer === undefined ? share : forServer(share, debits?.[ofDomain[0]!])
    if (asked !== undefined) shares.push({ op: asked as Asked, places: ofDomain })
  }
  return shares
}

function shareOf<Asked extends Op>(op: Asked, places: readonly number[]): Asked {
  const { parts } = op
  const share: Record<string, unknown> = { ...op, parts: places.map((place) => parts[place]!) }
  for (const [name, isPerLog] of SPLIT.get(op.type)!) {
    const values = share[name] as readonly unknown[] | undefined
    if (values === undefined) continue
    const cells = isPerLog ? byPart(parts, [[parts.map((_, place) => place), values]], logsIn) : values
    share[name] = places.flatMap((place) => cells[place])
  }
  return share as unknown as Asked
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
    send(store, [share.op], asked)
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

export function logsIn({ set }: Part): number {
  return set.logs.length
}
