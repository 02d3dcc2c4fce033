import type { Decision } from '../../src/decision.ts'
import type { Limit } from '../../src/index.ts'
import { decisionOf } from '../../src/limiter/decide.ts'
import type { Requester } from '../../src/limiter/waiting/queue.ts'
import { WaitingRoom } from '../../src/limiter/waiting/room.ts'
import { parseWaitOptions, type WaitOptions } from '../../src/limiter/waiting/waiter.ts'
import { limitSet } from '../../src/limits/limit-set.ts'
import { refundsOf } from '../../src/resilience/refunds.ts'
import { outcomesOf } from '../../src/stores/call.ts'
import type { ConsumeOp, ConsumeOutcome, Op, Part, Store } from '../../src/stores/store.ts'

/** A waiting room on a store, as a limiter has one. */
export interface Room {
  readonly room: WaitingRoom
  wait(key: string, options?: WaitOptions): Promise<Decision>
  /** Returns the current outcome, without a charge. */
  peek(key: string): Promise<ConsumeOutcome>
  /** Returns the units used in the first limit's window. */
  used(key: string): Promise<number>
  /** Refunds the charge of an op's first request, or releases what it holds. */
  giveBack(op: ConsumeOp, outcome: ConsumeOutcome): Promise<void>
  release(op: ConsumeOp): Promise<void>
  /** The ops sent, and their outcomes. */
  readonly asked: { readonly op: ConsumeOp; readonly outcome: ConsumeOutcome }[]
  /** Other ops that were sent. */
  readonly sent: Op[]
}

export function roomOn(
  store: Store,
  limits: readonly Limit[],
  maxWaiting = 20_000,
  decide: Requester['decide'] = decisionOf,
): Room {
  const set = limitSet('waiting', limits)
  const partsOf = (key: string): readonly Part[] => [{ key, set }]
  const asked: { op: ConsumeOp; outcome: ConsumeOutcome }[] = []
  const sent: Op[] = []
  const refunds = new WeakMap<Decision, readonly Op[]>()
  let made = 0
  const send = async (op: Op): Promise<void> => {
    sent.push(op)
    await outcomesOf(store, [op])
  }
  const requester: Requester = {
    async ask(parts, cost, count) {
      const isNamed = set.logs.some(({ kind }) => kind.entries !== undefined)
      const op: ConsumeOp = {
        type: 'consume',
        parts,
        leaseMs: 0,
        isWaiting: true,
        ...{ cost, count },
        ...(isNamed && { requestId: `request${made++}` }),
      }
      const outcome = (await outcomesOf(store, [op]))[0] as ConsumeOutcome
      asked.push({ op, outcome })
      return { op, outcome }
    },
    decide(op, outcome, position) {
      const decision = decide(op, outcome, position)
      refunds.set(decision, refundsOf(op, outcome, position, position + 1))
      return decision
    },
    giveBack(decision) {
      for (const refund of refunds.get(decision)!) void send(refund)
    },
  }
  const peek = async (key: string): Promise<ConsumeOutcome> => {
    const op: Op = { type: 'peek', parts: partsOf(key), cost: 1, count: 1 }
    return (await outcomesOf(store, [op]))[0] as ConsumeOutcome
  }
  const room = new WaitingRoom(requester, maxWaiting)
  return {
    room,
    wait: (key, options) => room.wait([key], () => partsOf(key), parseWaitOptions(options)),
    peek,
    used: async (key) => (await peek(key)).limits[0]!,
    async giveBack(op, outcome) {
      for (const refund of refundsOf(op, outcome, 0, 1)) await send(refund)
    },
    release: ({ parts, requestId = '', cost: units }) => send({ type: 'release', parts, requestId, units }),
    asked,
    sent,
  }
}
