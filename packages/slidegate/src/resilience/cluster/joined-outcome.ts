import { isDecided, type Source } from '../../decision.ts'
import type { InForce } from '../../limits/override.ts'
import type { Ban, ConsumeOutcome, Debit, Part, RequestOp } from '../../stores/store.ts'
import { zerosFor } from '../../stores/unseen.ts'
import { byPart, numbersIn } from './shares.ts'

/** What one domain says of its parts. */
export interface Said {
  readonly places: readonly number[]
  readonly outcome: ConsumeOutcome
}

/** Those that know least come first. */
const BY_KNOWLEDGE: readonly Source[] = ['failClosed', 'failOpen', 'fallback', 'denyCache', 'lease', 'store']

/** Merges the outcomes of several domains. Limits of parts that weren't asked read as unused. */
export function joinedOutcome(op: RequestOp, said: readonly Said[]): ConsumeOutcome {
  const { parts, count } = op
  const outcomes = said.map(({ outcome }) => outcome)
  const admitted = Math.min(count, ...outcomes.map((outcome) => outcome.admitted))
  const denials = outcomes.filter((outcome) => outcome.admitted <= 0)
  const bans = said.flatMap(({ places, outcome: { ban } }) =>
    ban === undefined ? [] : [{ ms: ban.ms, parts: ban.parts.map((part) => places[part]!) }],
  )
  return {
    source: admitted > 0 ? leastOf(outcomes) : sourceOf(denials),
    atMs: Math.max(...outcomes.map(({ atMs }) => atMs)),
    admitted,
    limits: numbersOf(parts, said),
    waitMs: Math.max(0, ...denials.map(({ waitMs }) => waitMs)),
    ...(bans.length > 0 && { ban: joinedBan(bans) }),
    ...(op.type === 'consume' && { debits: debitsIn(parts, said) }),
    ...(outcomes.some(({ overrides }) => overrides !== undefined) && { overrides: overridesIn(parts, said) }),
  }
}

function numbersOf(parts: readonly Part[], said: readonly Said[]): number[] {
  const rows = said.map(({ places, outcome }) => [places, outcome.limits] as const)
  const told = byPart(parts, rows, numbersIn)
  return parts.flatMap((part, place) => told[place] ?? zerosFor([part]))
}

function joinedBan(bans: readonly Ban[]): Ban {
  return {
    ms: Math.max(...bans.map(({ ms }) => ms)),
    parts: bans.flatMap(({ parts }) => parts).sort((a, b) => a - b),
  }
}

function debitsIn(parts: readonly Part[], said: readonly Said[]): Debit[] {
  const debits = new Array<Debit>(parts.length)
  for (const { places, outcome } of said) {
    const { source, atMs } = outcome
    places.forEach((place, i) => {
      debits[place] = { ...outcome.debits?.[i], source, atMs }
    })
  }
  return debits
}

function overridesIn(parts: readonly Part[], said: readonly Said[]): (InForce | undefined)[] {
  const overrides = new Array<InForce | undefined>(parts.length).fill(undefined)
  for (const { places, outcome } of said) {
    places.forEach((place, i) => {
      overrides[place] = outcome.overrides?.[i]
    })
  }
  return overrides
}

/** A denial by who knows something counts for more than one by who does not. */
function sourceOf(denials: readonly ConsumeOutcome[]): Source {
  const decided = denials.filter(({ source }) => isDecided(source))
  return decided.length > 0 ? leastOf(decided) : 'failClosed'
}

function leastOf(outcomes: readonly ConsumeOutcome[]): Source {
  const ranks = outcomes.map(({ source }) => BY_KNOWLEDGE.indexOf(source))
  return BY_KNOWLEDGE[Math.min(...ranks)]!
}
