// Decides a request in one step, or in several with exact returns.

import type { Decision } from 'slidegate'
import type { Question } from './question.ts'
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
export function decide(limiters: RuleLimiters, questions: readonly Question[]): Promise<Verdicts> {
  return areOneStep(questions) ? decideAtOnce(limiters, questions) : decideInSteps(limiters, questions)
}

/** Shadow limits deny nothing, also where a store that has failed is a denial. */
function verdictsOn(
  questions: readonly Question[],
  isDenied: boolean,
  decision: Decision | undefined,
): Verdicts {
  return { isDenied: isDenied && questions.some(({ rule }) => !rule.isShadow), decision }
}

async function decideAtOnce(limiters: RuleLimiters, questions: readonly Question[]): Promise<Verdicts> {
  const group = limiters.group(questions)
  try {
    const decision = await limiters.consume(group)
    tell(group, decision)
    return verdictsOn(questions, !decision.allowed, decision)
  } finally {
    limiters.letGo(group)
  }
}

/** Most are: all are charged the same, by different rules. */
function areOneStep(questions: readonly Question[]): boolean {
  if (questions.length === 0 || questions.length > MAX_DIMENSIONS) return false
  const [first] = questions
  for (let i = 0; i < questions.length; i++) {
    const { purpose, rule, hits } = questions[i]!
    if (purpose !== 'charge' || rule.limits === undefined || rule.isQuota || hits !== first!.hits)
      return false
    for (let j = 0; j < i; j++) if (questions[j]!.rule.id === rule.id) return false
  }
  return true
}

async function decideInSteps(limiters: RuleLimiters, questions: readonly Question[]): Promise<Verdicts> {
  const checks = groupsOf(limiters, questions, 'check')
  const charges = groupsOf(limiters, questions, 'charge')
  const settlements = groupsOf(limiters, questions, 'settle')
  const taken: Group[] = []
  const giveBack = () => Promise.all(taken.splice(0).map((group) => limiters.giveBack(group)))
  let first: Decision | undefined
  const told = (group: Group, decision: Decision) => {
    tell(group, decision)
    first ??= decision
    return decision.allowed
  }
  let isDenied = questions.some((question) => question.denies)
  try {
    for (const group of checks) if (!told(group, await limiters.peek(group))) isDenied = true
    for (const group of charges) {
      if (isDenied) told(group, await limiters.peek(group))
      else if (told(group, await limiters.consume(group))) taken.push(group)
      else isDenied = true
    }
    isDenied ||= areQuotasOver(questions)
    if (isDenied) await giveBack()
    for (const group of settlements) {
      told(group, await limiters.consume(group))
      if (group.questions[0]!.isOver) await limiters.charge(group)
      isDenied ||= group.questions[0]!.denies
    }
  } catch (error) {
    await giveBack()
    throw error
  } finally {
    for (const group of [...checks, ...charges, ...settlements]) limiters.letGo(group)
  }
  return verdictsOn(questions, isDenied, first)
}

/** Of quotas one is enough. */
export function areQuotasOver(questions: readonly Question[]): boolean {
  const quotas = questions.filter(({ rule }) => rule.isQuota && !rule.isShadow)
  return quotas.length > 0 && quotas.every((question) => question.isOver)
}

function groupsOf(
  limiters: RuleLimiters,
  questions: readonly Question[],
  purpose: Question['purpose'],
): readonly Group[] {
  const groups: Question[][] = []
  for (const question of questions) {
    if (question.purpose !== purpose || question.rule.limits === undefined) continue
    const group = groups.find(
      (others) =>
        // Of what has happened already each is charged by itself.
        purpose !== 'settle' &&
        others.length < MAX_DIMENSIONS &&
        others[0]!.cost === question.cost &&
        others.every(({ rule }) => rule.id !== question.rule.id),
    )
    if (group === undefined) groups.push([question])
    else group.push(question)
  }
  return groups.map((group) => limiters.group(group))
}
