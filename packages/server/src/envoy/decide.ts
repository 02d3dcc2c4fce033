import type { Decision } from 'slidegate'
import type { Ask } from './ask.ts'
import { type Group, type RuleLimiters, tell } from './rule-limiters.ts'

/** Of one limiter. */
const MAX_DIMENSIONS = 16

/** What became of a request. */
export interface Verdicts {
  readonly isDenied: boolean
  /** The first that was made; none where nobody had to be asked. */
  readonly decision: Decision | undefined
}

/**
 * Decides a request: all of its limits have room, or none is charged. Descriptors of different rules that cost the same are
 * one step of the store; others come after them, and where one of these is denied, what was charged is returned.
 */
export async function decide(limiters: RuleLimiters, asks: readonly Ask[]): Promise<Verdicts> {
  if (!areOneStep(asks)) return decideInSteps(limiters, asks)
  const group = limiters.group(asks)
  const decision = await limiters.consume(group)
  tell(group, decision)
  return { isDenied: !decision.allowed, decision }
}

/** Most are: all are charged the same, by different rules. */
function areOneStep(asks: readonly Ask[]): boolean {
  if (asks.length === 0 || asks.length > MAX_DIMENSIONS) return false
  const [first] = asks
  for (let i = 0; i < asks.length; i++) {
    const { purpose, rule, hits } = asks[i]!
    if (purpose !== 'charge' || rule.limits === undefined || rule.isQuota || hits !== first!.hits)
      return false
    for (let j = 0; j < i; j++) if (asks[j]!.rule.id === rule.id) return false
  }
  return true
}

async function decideInSteps(limiters: RuleLimiters, asks: readonly Ask[]): Promise<Verdicts> {
  const taken: [Group, Decision][] = []
  let first: Decision | undefined
  let isDenied = asks.some((ask) => ask.denies)
  const charges = groupsOf(limiters, asks, 'charge')
  const checks = groupsOf(limiters, asks, 'check')
  try {
    for (const group of checks) {
      const decision = await limiters.peek(group)
      tell(group, decision)
      first ??= decision
      isDenied ||= !decision.allowed
    }
    for (const group of charges) {
      const decision = await (isDenied ? limiters.peek(group) : limiters.consume(group))
      tell(group, decision)
      first ??= decision
      if (!isDenied && decision.allowed) taken.push([group, decision])
      isDenied ||= !decision.allowed
    }
  } catch (error) {
    await giveBack(limiters, taken)
    throw error
  }
  isDenied ||= areQuotasOver(asks)
  if (isDenied) await giveBack(limiters, taken)
  for (const group of settlements(limiters, asks)) {
    const decision = await limiters.consume(group)
    tell(group, decision)
    first ??= decision
    if (group.asks[0]!.isOver) await limiters.charge(group)
    isDenied ||= group.asks[0]!.denies
  }
  return { isDenied, decision: first }
}

/** Of quotas one is enough. */
function areQuotasOver(asks: readonly Ask[]): boolean {
  const quotas = asks.filter(({ rule }) => rule.isQuota && !rule.isShadow)
  return quotas.length > 0 && quotas.every((ask) => ask.isOver)
}

async function giveBack(
  limiters: RuleLimiters,
  taken: readonly (readonly [Group, Decision])[],
): Promise<void> {
  await Promise.all(taken.map(([group, decision]) => limiters.giveBack(group, decision)))
}

function groupsOf(limiters: RuleLimiters, asks: readonly Ask[], purpose: Ask['purpose']): readonly Group[] {
  const groups: Ask[][] = []
  for (const ask of asks) {
    if (ask.purpose !== purpose || ask.rule.limits === undefined) continue
    const group = groups.find(
      (others) =>
        others.length < MAX_DIMENSIONS &&
        others[0]!.cost === ask.cost &&
        others.every(({ rule }) => rule.id !== ask.rule.id),
    )
    if (group === undefined) groups.push([ask])
    else group.push(ask)
  }
  return groups.map((group) => limiters.group(group))
}

function settlements(limiters: RuleLimiters, asks: readonly Ask[]): readonly Group[] {
  return asks
    .filter(({ purpose, rule }) => purpose === 'settle' && rule.limits !== undefined)
    .map((ask) => limiters.group([ask]))
}
