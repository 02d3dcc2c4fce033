// Splits ops whose keys are on several servers in a Cluster, and merges the answers.

import { isCounted } from '../../decision.ts'
import { SlidegateError } from '../../errors.ts'
import type { ConsumeOp } from '../../ops/consume.ts'
import { setReset, setWait, usedOf } from '../../ops/numbers.ts'
import { type Part, partsInForce } from '../../ops/request.ts'
import type { Op } from '../../ops/table.ts'
import { applyEach } from '../../stores/call.ts'
import { limitsOf, roomsOf } from '../../stores/outcome.ts'
import type { Call, Store } from '../../stores/store.ts'
import { LateCharges } from '../refunds.ts'
import { type Answer, askAll, merged, type Share, sharesOf } from './split.ts'

/**
 * Splits ops whose parts are in several shards, and merges the answers.
 *
 * A script can't reach several shards, such as slots in a Cluster. This wraps the failure policy, so each shard has its
 * own deadline, breaker and fallback.
 *
 * - **All or nothing.** If one shard denies or fails, the other shards' charges are refunded, each with the time of its
 *   charge. Until they are refunded, they count: no limit is exceeded, but another caller may be denied for the
 *   duration of one round trip.
 * - **A denial is free.** After a refund, decisions are the same as without the charge. Only the reported time until a
 *   window is empty may differ.
 * - **Each shard has a clock.** An outcome's `atMs` is the latest time from its shards. Its `debits` have the time of
 *   each part's charge.
 * - If one shard denies, a reservation already made in another shard stays there until it expires.
 */
export function acrossShards(store: Store, shardOf: (op: Op) => number): Store {
  const late = new LateCharges(store)
  /** An op that is reused to find each part's shard. */
  const probe: { readonly type: 'reset'; readonly parts: Part[] } = { type: 'reset', parts: [] }
  const shardOfPart = (part: Part): number => {
    probe.parts[0] = part
    return shardOf(probe)
  }
  const isSplit = ({ parts }: Op): boolean => {
    if (parts.length === 1) return false
    const shard = shardOfPart(parts[0]!)
    for (let i = 1; i < parts.length; i++) if (shardOfPart(parts[i]!) !== shard) return true
    return false
  }
  const apply = (ops: readonly Op[], call: Call): void => {
    const op = ops[0]!
    if (!ops.some(isSplit)) store.apply(ops, call)
    else if (ops.length > 1) applyEach(ops, call, (op, each) => apply([op], each))
    else if ('cost' in op && op.mayRepeat === true && op.requestId !== undefined) {
      const what = `a request for ${op.parts.length} keys in different parts of the store`
      const message = `${what} cannot be repeated by id; omit requestId`
      call.reject(new SlidegateError('invalid_request_id', message, op.requestId))
    } else if (op.type === 'consume') {
      consumeAcross(op, sharesOf(op, shardOfPart), call, late)
    } else {
      askAll(store, sharesOf(op, shardOfPart), call, (answers, errors) => {
        if (errors.length > 0) call.reject(errors[0])
        else call.resolve([merged(op, answers)], 0)
      })
    }
  }
  return { apply, close: () => store.close() }
}

/** Decides on a request: either all shards admit it, or none keeps a charge. */
function consumeAcross(
  op: ConsumeOp,
  shares: readonly Share<ConsumeOp>[],
  call: Call,
  late: LateCharges,
): void {
  askAll(late.store, shares, call, (answers, errors) => {
    // A call that is already settled needs no answer.
    const isLost = errors.length > 0 || call.isSettled
    const kept = isLost ? 0 : Math.min(...answers.map(admittedBy))
    const returned = answers.filter((answer) => admittedBy(answer) > kept && isCounted(answer.outcome.source))
    for (const answer of returned) {
      const { share, together, position } = answer
      late.add(share.op, together, position + kept, position + admittedBy(answer))
    }
    if (errors.length > 0) call.reject(errors[0])
    else if (!isLost) {
      const kepts = answers.map((answer) => (returned.includes(answer) ? asReturned(answer, kept) : answer))
      call.resolve([merged(op, kepts)], 0)
    }
  })
}

function admittedBy({ share, outcome }: Answer<ConsumeOp>): number {
  return Math.min(outcome.admitted, share.op.count)
}

/** The answer as if the shard had charged only `kept` requests. */
function asReturned(answer: Answer<ConsumeOp>, kept: number): Answer<ConsumeOp> {
  const { share, outcome } = answer
  const { parts: asked, cost } = share.op
  const limits = outcome.limits.slice()
  const parts = partsInForce(asked, outcome.overrides)
  const rooms = roomsOf(parts, cost, limits)
  limitsOf(parts).forEach(({ limit, shadow }, i) => {
    const used = usedOf(limits, i)
    const fitting = shadow ? Math.min(kept, rooms[i]!) : kept
    if (used + cost * (fitting + 1) <= limit) setWait(limits, i, 0)
    if (used === 0 && kept === 0) setReset(limits, i, 0)
  })
  return { ...answer, outcome: { ...outcome, limits } }
}
