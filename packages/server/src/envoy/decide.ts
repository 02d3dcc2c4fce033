// Decides on a request in one step, or in several with exact refunds.

import type { Decision } from 'slidegate'
import type { Question } from './question.ts'
import { type Group, type RuleLimiters, setVerdicts } from './rule-limiters.ts'

/** Maximum number of dimensions in a limiter. */
const MAX_DIMENSIONS = 16

/** The result for a request. */
export interface Verdicts {
  readonly isDenied: boolean
  /** The first decision. Undefined if no limiter was needed. */
  readonly decision: Decision | undefined
}

/**
 * Decides on a request: charges all of its limits, or none.
 *
 * Descriptors with different rules and equal costs are decided in one call to the store. All others need
 * further calls. If one of those calls is denied, earlier charges are refunded.
 */
export function decide(limiters: RuleLimiters, questions: readonly Question[]): Promise<Verdicts> {
  return areOneStep(questions) ? decideInOneStep(limiters, questions) : decideInSteps(limiters, questions)
}

/** Returns the verdicts. A request is never denied by shadow limits alone, even if the limiter fails closed. */
function verdictsOn(
  questions: readonly Question[],
  isDenied: boolean,
  decision: Decision | undefined,
): Verdicts {
  return { isDenied: isDenied && questions.some(({ rule }) => !rule.isShadow), decision }
}

async function decideInOneStep(limiters: RuleLimiters, questions: readonly Question[]): Promise<Verdicts> {
  const group = limiters.group(questions)
  try {
    const decision = await limiters.consume(group)
    setVerdicts(group, decision)
    return verdictsOn(questions, !decision.allowed, decision)
  } finally {
    limiters.release(group)
  }
}

/** Whether all descriptors charge the same cost to different rules, as in most requests. */
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
  const undoAll = () => Promise.all(taken.splice(0).map((group) => limiters.undo(group)))
  let first: Decision | undefined
  const isAllowed = (group: Group, decision: Decision) => {
    setVerdicts(group, decision)
    first ??= decision
    return decision.allowed
  }
  let isDenied = questions.some((question) => question.denies)
  try {
    for (const group of checks) if (!isAllowed(group, await limiters.peek(group))) isDenied = true
    for (const group of charges) {
      if (isDenied) isAllowed(group, await limiters.peek(group))
      else if (isAllowed(group, await limiters.consume(group))) taken.push(group)
      else isDenied = true
    }
    isDenied ||= areQuotasOver(questions)
    if (isDenied) await undoAll()
    for (const group of settlements) {
      isAllowed(group, await limiters.consume(group))
      if (group.questions[0]!.isOver) await limiters.charge(group)
      isDenied ||= group.questions[0]!.denies
    }
  } catch (error) {
    await undoAll()
    throw error
  } finally {
    for (const group of [...checks, ...charges, ...settlements]) limiters.release(group)
  }
  return verdictsOn(questions, isDenied, first)
}

/** Whether all quotas are used up. One quota with units left is enough to allow the request. */
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
        // Hits that have already happened are charged separately.
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
