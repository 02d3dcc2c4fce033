// Splits an op whose keys are on several servers, and merges the outcomes.

import { isDecided, type Source } from '../../decision.ts'
import type { Entry } from '../../limits/limit.ts'
import type { InForce } from '../../limits/override.ts'
import type { ConsumeOp, ExplainOp, PeekOp } from '../../ops/all.ts'
import { PER_LIMIT } from '../../ops/numbers.ts'
import type { Ban, ConsumeOutcome, Debit, OverridesOutcome, Part, RequestOp } from '../../ops/request.ts'
import { kindOf, OPS, type Op, type Outcome } from '../../ops/table.ts'
import { type OutcomeOf, send } from '../../stores/call.ts'
import { outcomeAt } from '../../stores/outcome.ts'
import type { Call, Store } from '../../stores/store.ts'

/** The parts of an op that are in one shard. */
export interface Share<Asked extends Op = Op> {
  readonly op: Asked
  /** The indices of these parts in the whole op. */
  readonly places: readonly number[]
}

/** By op type: the fields that have a value per part or per log. */
const SPLIT = new Map(
  Object.entries(OPS).map(([type, { fields }]) => {
    const split = Object.entries(fields).filter(([, field]) => field.includes('Per'))
    return [type, split.map(([name, field]) => [name, field.includes('PerLog')] as const)]
  }),
)

/** Splits an op into one op per shard. */
export function sharesOf<Asked extends Op>(op: Asked, shardOf: (part: Part) => number): Share<Asked>[] {
  const places = new Map<number, number[]>()
  op.parts.forEach((part, place) => {
    const shard = shardOf(part)
    places.set(shard, [...(places.get(shard) ?? []), place])
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

export interface Answer<Asked extends Op = Op> {
  readonly share: Share<Asked>
  /** The store's outcome for all requests that were decided together. This request is at `position`. */
  readonly together: OutcomeOf<Asked>
  readonly position: number
  readonly outcome: OutcomeOf<Asked>
}

type RequestAnswer = Answer<ConsumeOp | PeekOp | ExplainOp>

/** Sends all shares in parallel. When all are settled, calls back with the answers and the failed shares' errors. */
export function askAll<Asked extends Op>(
  store: Store,
  shares: readonly Share<Asked>[],
  call: Call,
  whenDone: (answers: readonly Answer<Asked>[], errors: readonly unknown[]) => void,
): void {
  const answers: Answer<Asked>[] = []
  const errors: unknown[] = []
  // Without shares, nothing else would call back.
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
      resolve(outcomes, position) {
        settle(() => {
          const together = outcomes[0] as OutcomeOf<Asked>
          const outcome = outcomeAt(share.op, together, position) as OutcomeOf<Asked>
          answers.push({ share, together, position, outcome })
        })
      },
      reject(error) {
        settle(() => errors.push(error))
      },
    })
  }
}

/** Splits each row into cells, one for each index in `places`. Parts without a row have no cell. */
function byPart<T>(
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

function logsIn({ set }: Part): number {
  return set.logs.length
}

/** Merges the answers to an op's shares into its outcome. Limits in parts without an answer appear unused. */
export function merged(op: Op, answers: readonly Answer[]): Outcome {
  /** Joins all rows in the order of the parts. Parts without a row get a filler. */
  function joined<Cell>(name: string, sizeOf: (part: Part) => number, filler: Cell): Cell[] {
    const rows = answers.flatMap(({ share, outcome }) => {
      const row = fieldOf(outcome, name) as readonly Cell[] | undefined
      return row === undefined ? [] : [[share.places, row] as const]
    })
    return byPart(op.parts, rows, sizeOf).flatMap(
      (cells, place) => cells ?? new Array<Cell>(sizeOf(op.parts[place]!)).fill(filler),
    )
  }
  const decision = (): ConsumeOutcome => ({
    ...mergedDecision(op as RequestOp, answers as readonly RequestAnswer[]),
    limits: joined('limits', (part) => PER_LIMIT * limitsIn(part), 0),
    ...(answers.some(({ outcome }) => fieldOf(outcome, 'overrides') !== undefined) && {
      overrides: joined<InForce | undefined>('overrides', () => 1, undefined),
    }),
  })
  return kindOf(op).answer?.({
    flag: (name, by) => answers[by](({ outcome }) => fieldOf(outcome, name) === true),
    unitsPerLog: (name, areThere = true) => (areThere ? joined(name, logsIn, 0) : []),
    entriesPerLog: (name) => joined<readonly Entry[]>(name, logsIn, []),
    decision,
    explanation: () => ({
      ...decision(),
      frees: joined('frees', limitsIn, []),
      bans: joined('bans', () => 1, undefined),
      ...((op as ExplainOp).charges !== undefined && { charges: joined('charges', limitsIn, undefined) }),
    }),
    page: () => answers[0]!.outcome as OverridesOutcome,
  })
}

function mergedDecision(op: RequestOp, answers: readonly RequestAnswer[]) {
  const outcomes = answers.map(({ outcome }) => outcome)
  const admitted = Math.min(op.count, ...outcomes.map((outcome) => outcome.admitted))
  const denials = outcomes.filter((outcome) => outcome.admitted <= 0)
  const bans = answers.flatMap(({ share, outcome: { ban } }) =>
    ban === undefined ? [] : [{ ms: ban.ms, parts: ban.parts.map((part) => share.places[part]!) }],
  )
  return {
    source: admitted > 0 ? leastOf(outcomes) : sourceOf(denials),
    atMs: Math.max(...outcomes.map(({ atMs }) => atMs)),
    admitted,
    waitMs: Math.max(0, ...denials.map(({ waitMs }) => waitMs)),
    ...(bans.length > 0 && { ban: joinedBan(bans) }),
    ...(kindOf(op as Op).effect === 'charge' && { debits: debitsIn(op.parts, answers) }),
  }
}

function fieldOf(outcome: Outcome, name: string): unknown {
  return (outcome as Readonly<Record<string, unknown>> | undefined)?.[name]
}

function limitsIn({ set }: Part): number {
  return set.limits.length
}

/** All sources, from the least to the most certain. */
const BY_KNOWLEDGE: readonly Source[] = ['failClosed', 'failOpen', 'fallback', 'denyCache', 'lease', 'store']

function joinedBan(bans: readonly Ban[]): Ban {
  return {
    ms: Math.max(...bans.map(({ ms }) => ms)),
    parts: bans.flatMap(({ parts }) => parts).sort((a, b) => a - b),
  }
}

function debitsIn(parts: readonly Part[], answers: readonly RequestAnswer[]): Debit[] {
  const debits = new Array<Debit>(parts.length)
  for (const { share, outcome } of answers) {
    const { source, atMs } = outcome
    share.places.forEach((place, i) => {
      debits[place] = { ...outcome.debits?.[i], source, atMs }
    })
  }
  return debits
}

/** Denials based on known usage take precedence. */
function sourceOf(denials: readonly ConsumeOutcome[]): Source {
  const decided = denials.filter(({ source }) => isDecided(source))
  return decided.length > 0 ? leastOf(decided) : 'failClosed'
}

function leastOf(outcomes: readonly ConsumeOutcome[]): Source {
  const ranks = outcomes.map(({ source }) => BY_KNOWLEDGE.indexOf(source))
  return BY_KNOWLEDGE[Math.min(...ranks)]!
}
