// Merges the outcomes of several servers.

import { isDecided, type Source } from '../../decision.ts'
import type { Entry } from '../../limits/limit.ts'
import type { InForce } from '../../limits/override.ts'
import type { ExplainOp } from '../../ops/explain.ts'
import { PER_LIMIT } from '../../ops/numbers.ts'
import type { Reply } from '../../ops/op.ts'
import type {
  Ban,
  ConsumeOutcome,
  Debit,
  ExplainOutcome,
  OverridesOutcome,
  Part,
  RequestOp,
} from '../../ops/request.ts'
import { kindOf, type Op, type Outcome } from '../../ops/table.ts'
import { byPart, logsIn, type Share } from './split.ts'

/** The outcome of a share. */
interface Shared<Of = Outcome> {
  readonly share: Pick<Share, 'places'>
  readonly outcome: Of
}

/** The outcome of an op, from the answers to its shares. */
export function merged(op: Op, answers: readonly Shared[]): Outcome {
  return kindOf(op).answer?.(new MergedReply(op, answers))
}

class MergedReply implements Reply {
  readonly #op: Op
  readonly #answers: readonly Shared[]

  constructor(op: Op, answers: readonly Shared[]) {
    this.#op = op
    this.#answers = answers
  }

  flag(name: string, by: 'every' | 'some'): boolean {
    return this.#answers[by](({ outcome }) => fieldOf(outcome, name) === true)
  }

  unitsPerLog(name: string, areThere = true): readonly number[] {
    return areThere ? this.#joined(name, logsIn, 0) : []
  }

  entriesPerLog(name: string): readonly (readonly Entry[])[] {
    return this.#joined(name, logsIn, [])
  }

  /** Limits of parts without an answer appear unused. */
  decision(): ConsumeOutcome {
    const { parts, count } = this.#op as RequestOp
    const answers = this.#answers as readonly Shared<ConsumeOutcome>[]
    const outcomes = answers.map(({ outcome }) => outcome)
    const admitted = Math.min(count, ...outcomes.map((outcome) => outcome.admitted))
    const denials = outcomes.filter((outcome) => outcome.admitted <= 0)
    const bans = answers.flatMap(({ share, outcome: { ban } }) =>
      ban === undefined ? [] : [{ ms: ban.ms, parts: ban.parts.map((part) => share.places[part]!) }],
    )
    return {
      source: admitted > 0 ? leastOf(outcomes) : sourceOf(denials),
      atMs: Math.max(...outcomes.map(({ atMs }) => atMs)),
      admitted,
      limits: this.#joined('limits', (part) => PER_LIMIT * limitsIn(part), 0),
      waitMs: Math.max(0, ...denials.map(({ waitMs }) => waitMs)),
      ...(bans.length > 0 && { ban: joinedBan(bans) }),
      ...(kindOf(this.#op).effect === 'charge' && { debits: debitsIn(parts, answers) }),
      ...(outcomes.some(({ overrides }) => overrides !== undefined) && {
        overrides: this.#joined<InForce | undefined>('overrides', () => 1, undefined),
      }),
    }
  }

  explanation(): ExplainOutcome {
    return {
      ...this.decision(),
      frees: this.#joined('frees', limitsIn, []),
      bans: this.#joined('bans', () => 1, undefined),
      ...((this.#op as ExplainOp).charges !== undefined && {
        charges: this.#joined('charges', limitsIn, undefined),
      }),
    }
  }

  page(): OverridesOutcome {
    return this.#answers[0]!.outcome as OverridesOutcome
  }

  /** All rows in the order of the parts. Uses a filler for parts without a row. */
  #joined<Cell>(name: string, sizeOf: (part: Part) => number, filling: Cell): Cell[] {
    const { parts } = this.#op
    const rows = this.#answers.flatMap(({ share, outcome }) => {
      const row = fieldOf(outcome, name) as readonly Cell[] | undefined
      return row === undefined ? [] : [[share.places, row] as const]
    })
    return byPart(parts, rows, sizeOf).flatMap(
      (cells, place) => cells ?? new Array<Cell>(sizeOf(parts[place]!)).fill(filling),
    )
  }
}

function fieldOf(outcome: Outcome, name: string): unknown {
  return (outcome as Readonly<Record<string, unknown>> | undefined)?.[name]
}

function limitsIn({ set }: Part): number {
  return set.limits.length
}

/** Least certain first. */
const BY_KNOWLEDGE: readonly Source[] = ['failClosed', 'failOpen', 'fallback', 'denyCache', 'lease', 'store']

function joinedBan(bans: readonly Ban[]): Ban {
  return {
    ms: Math.max(...bans.map(({ ms }) => ms)),
    parts: bans.flatMap(({ parts }) => parts).sort((a, b) => a - b),
  }
}

function debitsIn(parts: readonly Part[], answers: readonly Shared<ConsumeOutcome>[]): Debit[] {
  const debits = new Array<Debit>(parts.length)
  for (const { share, outcome } of answers) {
    const { source, atMs } = outcome
    share.places.forEach((place, i) => {
      debits[place] = { ...outcome.debits?.[i], source, atMs }
    })
  }
  return debits
}

/** Denials with known usage take precedence over those without. */
function sourceOf(denials: readonly ConsumeOutcome[]): Source {
  const decided = denials.filter(({ source }) => isDecided(source))
  return decided.length > 0 ? leastOf(decided) : 'failClosed'
}

function leastOf(outcomes: readonly ConsumeOutcome[]): Source {
  const ranks = outcomes.map(({ source }) => BY_KNOWLEDGE.indexOf(source))
  return BY_KNOWLEDGE[Math.min(...ranks)]!
}
