// Splits an op whose keys are on several servers, and sends each server its part.

import type { Debit, Part } from '../../ops/request.ts'
import { kindOf, OPS, type Op, type Outcome } from '../../ops/table.ts'
import { send } from '../../stores/call.ts'
import { outcomeAt } from '../../stores/outcome.ts'
import type { Call, Store } from '../../stores/store.ts'

/** The parts of an op that are in one shard. */
export interface Share<Asked extends Op = Op> {
  readonly op: Asked
  /** The indices of these parts in the whole op. */
  readonly places: readonly number[]
}

/** The fields of each op that have a value per part or per log. */
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

/** Groups an op's parts by shard, each as an op of its own. */
export function sharesOf<Asked extends Op>(op: Asked, shardOf: (part: Part) => number): Share<Asked>[] {
  const places = new Map<number, number[]>()
  op.parts.forEach((part, place) => {
    const shard = shardOf(part)
    const known = places.get(shard)
    if (known === undefined) places.set(shard, [place])
    else known.push(place)
  })
  const { forServer } = kindOf(op)
  const { debits } = op as { readonly debits?: readonly Debit[] }
  const shares: Share<Asked>[] = []
  for (const ofShard of places.values()) {
    const share = shareOf(op, ofShard)
    const asked = forServer === undefined ? share : forServer(share, debits?.[ofShard[0]!])
    if (asked !== undefined) shares.push({ op: asked as Asked, places: ofShard })
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

/** The answer to a share. */
export interface Answer<Asked extends Op = Op> {
  readonly share: Share<Asked>
  /** The store's outcome for all requests that were decided together. This one is at `position`. */
  readonly together: Outcome
  readonly position: number
  /** The outcome of this request alone. */
  readonly outcome: Outcome
}

/** Sends all shares at once. Calls back when all are settled, with the errors of those that failed. */
export function askAll<Asked extends Op>(
  store: Store,
  shares: readonly Share<Asked>[],
  call: Call,
  whenDone: (answers: readonly Answer<Asked>[], errors: readonly unknown[]) => void,
): void {
  const answers: Answer<Asked>[] = []
  const errors: unknown[] = []
  // There may be nothing to do for any server.
  if (shares.length === 0) whenDone(answers, errors)
  for (const share of shares) {
    let isSettled = false
    const settle = (keep: () => void): void => {
      if (isSettled) return
      isSettled = true
      keep()
      if (answers.length + errors.length === shares.length) whenDone(answers, errors)
    }
    send(store, [share.op], {
      get isSettled() {
        return isSettled || call.isSettled
      },
      resolve([together], position) {
        settle(() =>
          answers.push({ share, together, position, outcome: outcomeAt(share.op, together, position) }),
        )
      },
      reject(error) {
        settle(() => errors.push(error))
      },
    })
  }
}

/** Distributes the rows of the shares to the parts. */
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
