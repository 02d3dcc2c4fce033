import { type Call, outcomeAt } from '../call.ts'
import type { Op, Outcome, Store } from '../store.ts'
import type { Batcher } from './batcher.ts'

/**
 * Hands each op to the batcher of its domain. Several ops of one call travel like any others; the call hears of them
 * when the last is answered.
 *
 * @param now the time that counts, where it is not the server's
 */
export function batchedStore(
  batchers: readonly Batcher[],
  domainOf: (op: Op) => number,
  now: () => number | undefined = () => undefined,
): Required<Pick<Store, 'apply' | 'domainOf' | 'isCrowded'>> {
  function sendAll(ops: readonly Op[], nowMs: number | undefined, call: Call): void {
    const outcomes: Outcome[] = ops.map(() => undefined)
    let left = ops.length
    ops.forEach((op, i) => {
      batchers[domainOf(op)]!.send(op, nowMs, {
        get isSettled() {
          return call.isSettled
        },
        resolve([outcome], position) {
          outcomes[i] = outcomeAt(op, outcome, position)
          left--
          if (left === 0) call.resolve(outcomes, 0)
        },
        reject: (error) => call.reject(error),
      })
    })
  }

  return {
    domainOf,
    isCrowded: (op, sinceMs) => batchers[domainOf(op)]!.isCrowded(op, sinceMs),
    apply(ops, call) {
      const nowMs = now()
      if (ops.length === 1) batchers[domainOf(ops[0]!)]!.send(ops[0]!, nowMs, call)
      else sendAll(ops, nowMs, call)
    },
  }
}
