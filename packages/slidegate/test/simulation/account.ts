import type { LimitSet } from '../../src/limits/limit-set.ts'
import type { RefundOp } from '../../src/stores/store.ts'
import type { Asked } from './asked.ts'
import type { Process } from './process.ts'
import type { Definition } from './scenario.ts'
import { type Execution, nameOf } from './server.ts'
import type { World } from './world.ts'

/** All that concerns one key of one limiter, in all processes and on its server. */
export interface Account {
  readonly name: string
  readonly definition: Definition
  readonly set: LimitSet
  readonly asked: Asked[]
  readonly executions: Execution[]
  /** What the library has returned on its own. */
  readonly returns: RefundOp[]
  /** What callers have asked for that was carried out. */
  readonly callers: Map<Execution, Asked>
  /** Whether it was ever to be forgotten, or the clock was set. */
  isDisturbed: boolean
}

export function accountsOf(world: World, processes: readonly Process[]): Account[] {
  const accounts = new Map<string, Account>()
  for (const limiter of processes.flatMap(({ allLimiters }) => allLimiters)) {
    for (const asked of limiter.asked) {
      const { part, question } = asked
      if (part === undefined) continue
      const name = nameOf(part)
      const account = accounts.get(name) ?? newAccount(world, name, asked, part.set)
      accounts.set(name, account)
      account.asked.push(asked)
      // One that gets lost voids what its process has leased all the same.
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

function newAccount(world: World, name: string, asked: Asked, set: LimitSet): Account {
  return {
    name,
    definition: asked.of.definition,
    set,
    asked: [],
    executions: [],
    returns: [],
    callers: new Map(),
    isDisturbed: world.serverOf(asked.key).disturbedAtMs > 0,
  }
}
