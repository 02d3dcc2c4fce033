import { isDecided, type Source } from '../decision.ts'
import type { ConsumeOutcome, Part, RequestOp } from '../stores/store.ts'
import { zerosFor } from '../stores/unseen.ts'
import { byPart, joined, limitsIn, numbersIn } from './shares.ts'

/** What one domain says of its parts. */
export interface Said {
  readonly places: readonly number[]
  readonly outcome: ConsumeOutcome
}

/** Those that know least come first. */
const BY_KNOWLEDGE: readonly Source[] = ['failClosed', 'failOpen', 'fallback', 'denyCache', 'lease', 'store']

/** Merges the outcomes of several domains. Limits of parts that weren't asked read as unused. */
export function joinedOutcome(op: RequestOp, said: readonly Said[]): ConsumeOutcome {
  const { parts, count, cost } = op
  const outcomes = said.map(({ outcome }) => outcome)
  const admitted = Math.min(count, ...outcomes.map((outcome) => outcome.admitted))
  const denials = outcomes.filter((outcome) => outcome.admitted <= 0)
  const blockedMs = Math.max(0, ...outcomes.map((outcome) => outcome.blockedMs ?? 0))
  const bannedParts = said
    .flatMap(({ places, outcome }) => outcome.bannedParts?.map((part) => places[part]!) ?? [])
    .sort((a, b) => a - b)
  const costs = said.flatMap(({ places, outcome }) => {
    return outcome.costs === undefined ? [] : [[places, outcome.costs] as const]
  })
  return {
    source: admitted > 0 ? leastOf(outcomes) : sourceOf(denials),
    atMs: Math.max(...outcomes.map(({ atMs }) => atMs)),
    admitted,
    limits: numbersOf(parts, said),
    waitMs: Math.max(0, ...denials.map(({ waitMs }) => waitMs)),
    ...(costs.length > 0 && { costs: joined(parts, costs, limitsIn, cost) }),
    ...(blockedMs > 0 && { blockedMs }),
    ...(bannedParts.length > 0 && { bannedParts }),
    ...(op.type === 'consume' && op.isWaiting && { isJoined: true }),
    ...(op.type === 'consume' && admitted > 0 && originsOf(parts, said)),
  }
}

function numbersOf(parts: readonly Part[], said: readonly Said[]): number[] {
  const rows = said.map(({ places, outcome }) => [places, outcome.limits] as const)
  const told = byPart(parts, rows, numbersIn)
  return parts.flatMap((part, place) => told[place] ?? zerosFor([part]))
}

/** When each part was charged, and by whom. */
function originsOf(
  parts: readonly Part[],
  said: readonly Said[],
): Pick<ConsumeOutcome, 'instants' | 'sources'> {
  const instants = new Array<number>(parts.length)
  const sources = new Array<Source>(parts.length)
  for (const { places, outcome } of said) {
    for (const place of places) {
      instants[place] = outcome.atMs
      sources[place] = outcome.source
    }
  }
  return sources.every((source) => source === sources[0]) ? { instants } : { instants, sources }
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
