import { applyEach } from '../call.ts'
import type { Op, Store } from '../store.ts'
import type { Batcher } from './batcher.ts'

/**
 * Hands each op to the batcher of its domain. Several ops of one call travel like any others.
 *
 * @param now the time that counts, where it is not the server's
 */
export function batchedStore(
  batchers: readonly Batcher[],
  domainOf: (op: Op) => number,
  now: () => number | undefined = () => undefined,
): Required<Pick<Store, 'apply' | 'domainOf' | 'isCrowded'>> {
  return {
    domainOf,
    isCrowded: (op, sinceMs) => batchers[domainOf(op)]!.isCrowded(op, sinceMs),
    apply(ops, call) {
      const nowMs = now()
      if (ops.length === 1) batchers[domainOf(ops[0]!)]!.send(ops[0]!, nowMs, call)
      else applyEach(ops, call, (op, each) => batchers[domainOf(op)]!.send(op, nowMs, each))
    },
  }
}
