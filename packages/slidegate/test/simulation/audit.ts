import type { Limit } from '../../src/limits/limit.ts'
import type { ConsumeOp, ConsumeOutcome, RefundOutcome } from '../../src/stores/store.ts'
import { type Admission, fullestWindow } from '../processes/fullest-window.ts'
import { type Account, accountsOf } from './account.ts'
import type { CallerRequest } from './caller-request.ts'
import type { Process } from './process.ts'
import { chargedBy } from './server.ts'
import type { World } from './world.ts'

/** Checks a complete run. */
export function audit(world: World, processes: readonly Process[]): void {
  for (const account of accountsOf(world, processes)) {
    expectNeverOver(world, account)
    if (account.definition.isLong && !account.isDisturbed) expectBalance(world, account)
  }
  for (const { allLimiters } of processes)
    for (const { name, requests } of allLimiters) expectLocalShare(world, name, requests)
}

/** Checks that requests admitted by the store never exceed a limit in any window. Refunded requests don't count. */
function expectNeverOver(world: World, account: Account): void {
  const { name, definition, requests, callers } = account
  const returned = new Set<CallerRequest>()
  for (const [execution, caller] of callers)
    if (caller.refundOf !== undefined && execution.units.some((units) => units > 0))
      returned.add(caller.refundOf)
  const doubtful = doubtfulGenerations(account)
  const generations = new Map<number, Admission[]>()
  for (const each of requests) {
    const { execution, decision, isLate, cost } = each
    if (execution === undefined || isLate || decision === undefined || returned.has(each)) continue
    const { generation } = execution
    if (doubtful.has(generation)) continue
    // The time by the server's clock, which isn't set within a generation.
    const atMs = decision.source === 'lease' ? each.heardAtMs! + execution.skewMs : decision.atMs
    const spent = generations.get(generation)
    const unit = { atMs, cost }
    if (spent === undefined) generations.set(generation, [unit])
    else spent.push(unit)
  }
  for (const spent of generations.values()) {
    for (const limit of definition.limits) {
      const fullest = limit.shadow ? 0 : fullestOf(limit, spent)
      world.expect(
        fullest <= limit.limit,
        () => `${name}: ${fullest} of ${limit.limit} in a window (${limit.name})`,
      )
    }
  }
}

/**
 * Returns generations in which a refund of a charge from an earlier generation took units.
 * This can happen within a grain if the clock is set or data is lost.
 */
function doubtfulGenerations({ executions, definition }: Account): Set<number> {
  const coarsest = Math.max(...definition.limits.map(({ precisionMs }) => precisionMs))
  const doubtful = new Set<number>()
  for (const { op, generation, units } of executions) {
    if (op.type !== 'refund' || generation === 0 || units.every((each) => each === 0)) continue
    const isOfEarlier = executions.some(
      (earlier) =>
        earlier.generation < generation &&
        earlier.op.type !== 'refund' &&
        Math.abs(((earlier.outcome as ConsumeOutcome | undefined)?.atMs ?? earlier.serverMs) - op.atMs) <=
          coarsest,
    )
    if (isOfEarlier) doubtful.add(generation)
  }
  return doubtful
}

function fullestOf({ kind, windowMs }: Limit, spent: readonly Admission[]): number {
  if (kind.tag !== 'f') return fullestWindow(spent, windowMs)
  const windows = new Map<number, number>()
  for (const { atMs, cost } of spent) {
    const window = Math.floor(atMs / windowMs)
    windows.set(window, (windows.get(window) ?? 0) + cost)
  }
  return Math.max(0, ...windows.values())
}

/**
 * Checks the sum of all charges.
 * The server must hold what callers were granted, what they charged, and what they may have used without a reply.
 * Units lost with a reply or a refund count separately.
 */
function expectBalance(world: World, account: Account): void {
  const { name, set, requests, executions, returns, callers } = account
  const logs = set.logs.map((_, i) => i)
  const held = logs.map(() => 0)
  const due = logs.map(() => 0)
  const lost = logs.map(() => 0)
  const add = (sums: number[], units: readonly number[], sign: 1 | -1) => {
    for (const i of logs) sums[i]! += sign * units[i]!
  }
  const carriedOut = new Map<unknown, readonly number[]>()
  for (const execution of executions) {
    const { op, units, isHeard } = execution
    add(held, units, op.type === 'refund' ? -1 : 1)
    if (op.type === 'refund') carriedOut.set(op, (execution.outcome as RefundOutcome).returned)
    if (op.type === 'charge') add(due, units, 1)
    if (op.type === 'refund' && callers.has(execution)) add(due, units, -1)
    if (op.type === 'consume' && !isHeard) add(lost, units, 1)
  }
  for (const { execution, position, decision, isLate } of requests) {
    if (execution === undefined || position === undefined) continue
    // If the caller was allowed without the store before the charge, the units are used.
    const isUsed = !isLate || decision?.allowed === true
    if (!isUsed) continue
    if (isLate) world.count('charges kept for allowed requests')
    const { cost } = execution.op as ConsumeOp
    add(due, chargedBy(set, cost, execution.outcome as ConsumeOutcome, position, position + 1), 1)
  }
  for (const refund of returns) {
    const returned = carriedOut.get(refund)
    const units = logs.map((i) => (refund.charged[i] === true ? refund.units : 0))
    if (returned === undefined) {
      world.count('returns lost')
      add(lost, units, 1)
    } else {
      world.count('returns')
      const isWhole = logs.every((i) => returned[i] === units[i])
      world.expect(isWhole, () => `${name}: ${returned} of ${units} units were returned`)
    }
  }
  const isBalanced = logs.every((i) => held[i] === due[i]! + lost[i]!)
  world.count('balances')
  if (lost.every((units) => units === 0)) world.count('balances without loss')
  world.expect(
    isBalanced,
    () => `${name}: the server holds ${held}, of which ${due} are due and ${lost} lost`,
  )
}

/** Checks that without the store, a process admits no more than its share. */
function expectLocalShare(world: World, name: string, requests: readonly CallerRequest[]): void {
  // A refund from before a reset may find a charge from after it, in the same grain.
  const doubtful = new Set(
    requests.filter(({ refundOf }) => refundOf?.decision?.source === 'fallback').map(({ key }) => key),
  )
  const groups = new Map<string, { readonly of: CallerRequest; readonly spent: Admission[] }>()
  for (const each of requests) {
    const { decision, question, key, localGeneration, cost, isRefundAsked } = each
    if (question !== 'consume' || decision?.source !== 'fallback' || !decision.allowed || isRefundAsked)
      continue
    if (doubtful.has(key) && localGeneration !== 0) continue
    const group = `${key} ${localGeneration}`
    const known = groups.get(group) ?? { of: each, spent: [] }
    known.spent.push({ atMs: decision.atMs, cost })
    groups.set(group, known)
  }
  for (const { of, spent } of groups.values()) {
    const { definition, policy } = of.of
    for (const limit of definition.limits) {
      if (limit.shadow) continue
      const share = Math.max(1, Math.floor(limit.limit / policy.instances))
      const fullest = fullestOf(limit, spent)
      world.expect(
        fullest <= share,
        () => `${name} ${of.key}: ${fullest} of a share of ${share} (${limit.name})`,
      )
    }
  }
}
