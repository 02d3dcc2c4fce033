import type { LimitSet } from '../../src/limits/limit-set.ts'
import type { RefundOp } from '../../src/stores/store.ts'
import type { CallerRequest } from './caller-request.ts'
import type { Process } from './process.ts'
import type { Definition } from './scenario.ts'
import { type Execution, nameOf } from './server.ts'
import type { World } from './world.ts'

/** Everything about one key of one limiter, in all processes and on its server. */
export interface Account {
  readonly name: string
  readonly definition: Definition
  readonly set: LimitSet
  readonly requests: CallerRequest[]
  readonly executions: Execution[]
  /** Refunds that the library sent on its own. */
  readonly returns: RefundOp[]
  /** Ops of callers that were executed. */
  readonly callers: Map<Execution, CallerRequest>
  /** Whether the key was reset or lost, or the clock was set. */
  isDisturbed: boolean
}

export function accountsOf(world: World, processes: readonly Process[]): Account[] {
  const accounts = new Map<string, Account>()
  for (const limiter of processes.flatMap(({ allLimiters }) => allLimiters)) {
    for (const request of limiter.requests) {
      const { part, question } = request
      if (part === undefined) continue
      const name = nameOf(part)
      const account = accounts.get(name) ?? newAccount(world, name, request, part.set)
      accounts.set(name, account)
      account.requests.push(request)
      // Even a lost reset drops the leases of its process.
      if (question === 'reset') account.isDisturbed = true
    }
  }
  for (const execution of world.executions()) {
    const account = accounts.get(nameOf(execution.op.parts[0]!))!
    const caller = processes[execution.by]!.callerOf(execution.op)
    account.executions.push(execution)
    if (caller !== undefined) account.callers.set(execution, caller)
  }
  for (const process of processes) {
    for (const refund of process.refunds)
      if (process.callerOf(refund) === undefined) accounts.get(nameOf(refund.parts[0]!))!.returns.push(refund)
  }
  return Array.from(accounts.values())
}

function newAccount(world: World, name: string, request: CallerRequest, set: LimitSet): Account {
  return {
    name,
    definition: request.of.definition,
    set,
    requests: [],
    executions: [],
    returns: [],
    callers: new Map(),
    isDisturbed: world.serverOf(request.key).disturbedAtMs > 0,
  }
}
