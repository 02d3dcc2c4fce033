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
export function decide(limiters: RuleLimiters, asks: readonly Ask[]): Promise<Verdicts> {
  return areOneStep(asks) ? decideAtOnce(limiters, asks) : decideInSteps(limiters, asks)
}

/** Shadow limits deny nothing, also where a store that has failed is a denial. */
function verdictsOn(asks: readonly Ask[], isDenied: boolean, decision: Decision | undefined): Verdicts {
  return { isDenied: isDenied && asks.some(({ rule }) => !rule.isShadow), decision }
}

async function decideAtOnce(limiters: RuleLimiters, asks: readonly Ask[]): Promise<Verdicts> {
  const group = limiters.group(asks)
  try {
    const decision = await limiters.consume(group)
    tell(group, decision)
    return verdictsOn(asks, !decision.allowed, decision)
  } finally {
    limiters.letGo(group)
  }
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
  const checks = groupsOf(limiters, asks, 'check')
  const charges = groupsOf(limiters, asks, 'charge')
  const settlements = groupsOf(limiters, asks, 'settle')
  const taken: Group[] = []
  const giveBack = () => Promise.all(taken.splice(0).map((group) => limiters.giveBack(group)))
  let first: Decision | undefined
  const told = (group: Group, decision: Decision) => {
    tell(group, decision)
    first ??= decision
    return decision.allowed
  }
  let isDenied = asks.some((ask) => ask.denies)
  try {
    for (const group of checks) if (!told(group, await limiters.peek(group))) isDenied = true
    for (const group of charges) {
      if (isDenied) told(group, await limiters.peek(group))
      else if (told(group, await limiters.consume(group))) taken.push(group)
      else isDenied = true
    }
    isDenied ||= areQuotasOver(asks)
    if (isDenied) await giveBack()
    for (const group of settlements) {
      told(group, await limiters.consume(group))
      if (group.asks[0]!.isOver) await limiters.charge(group)
      isDenied ||= group.asks[0]!.denies
    }
  } catch (error) {
    await giveBack()
    throw error
  } finally {
    for (const group of [...checks, ...charges, ...settlements]) limiters.letGo(group)
  }
  return verdictsOn(asks, isDenied, first)
}

/** Of quotas one is enough. */
export function areQuotasOver(asks: readonly Ask[]): boolean {
  const quotas = asks.filter(({ rule }) => rule.isQuota && !rule.isShadow)
  return quotas.length > 0 && quotas.every((ask) => ask.isOver)
}

function groupsOf(limiters: RuleLimiters, asks: readonly Ask[], purpose: Ask['purpose']): readonly Group[] {
  const groups: Ask[][] = []
  for (const ask of asks) {
    if (ask.purpose !== purpose || ask.rule.limits === undefined) continue
    const group = groups.find(
      (others) =>
        // Of what has happened already each is charged by itself.
        purpose !== 'settle' &&
        others.length < MAX_DIMENSIONS &&
        others[0]!.cost === ask.cost &&
        others.every(({ rule }) => rule.id !== ask.rule.id),
    )
    if (group === undefined) groups.push([ask])
    else group.push(ask)
  }
  return groups.map((group) => limiters.group(group))
}
