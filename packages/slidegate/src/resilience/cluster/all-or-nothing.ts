// A request whose keys live on several servers is admitted by all of them, or charged by none.

import { isCounted } from '../../decision.ts'
import type { ConsumeOp } from '../../ops/consume.ts'
import { setReset, setWait, usedOf } from '../../ops/numbers.ts'
import { type ConsumeOutcome, partsInForce } from '../../ops/request.ts'
import { limitsOf, roomsOf } from '../../stores/outcome.ts'
import type { Call, Store } from '../../stores/store.ts'
import type { LateCharges } from '../refunds.ts'
import { merged, type Said } from './merge.ts'
import { askAll, type Share, type Told } from './split.ts'

/** The answer of one domain, and what it charged. */
interface Charged extends Said {
  readonly told: Told<ConsumeOp>
  /** How many of the op's requests the domain admitted. */
  readonly admitted: number
}

/** Asks all domains of a request at once. If one denies or fails, the charges of the others are returned. */
export function consumeAcross(
  op: ConsumeOp,
  shares: readonly Share<ConsumeOp>[],
  call: Call,
  store: Store,
  late: LateCharges,
): void {
  askAll(store, shares, call, (told, errors) => {
    const charged = told.map(chargedBy)
    // Nobody waits for the answer any more if the call is settled.
    const isLost = errors.length > 0 || call.isSettled
    const kept = isLost ? 0 : Math.min(...charged.map((each) => each.admitted))
    for (const { told, admitted } of charged) {
      const outcome = told.together as ConsumeOutcome
      if (admitted <= kept || !isCounted(outcome.source)) continue
      late.add(told.share.op, outcome, told.position + kept, told.position + admitted)
    }
    if (errors.length > 0) call.reject(errors[0])
    else if (!isLost) {
      const said = charged.map((each) => asReturned(each, op, kept))
      call.resolve([merged(op, said)], 0)
    }
  })
}

function chargedBy(told: Told<ConsumeOp>): Charged {
  const outcome = told.outcome as ConsumeOutcome
  const admitted = Math.min(outcome.admitted, told.share.op.count)
  return { told, places: told.share.places, outcome, admitted }
}

/** The answer as if the domain had charged at most `kept` requests. */
function asReturned({ places, outcome, told, admitted }: Charged, { cost }: ConsumeOp, kept: number): Said {
  if (admitted <= kept || !isCounted(outcome.source)) return { places, outcome }
  const numbers = outcome.limits.slice()
  const parts = partsInForce(told.share.op.parts, outcome.overrides)
  const rooms = roomsOf(parts, cost, numbers)
  limitsOf(parts).forEach(({ limit, shadow }, i) => {
    const used = usedOf(numbers, i)
    const fitting = shadow ? Math.min(kept, rooms[i]!) : kept
    if (used + cost * (fitting + 1) <= limit) setWait(numbers, i, 0)
    if (used === 0 && kept === 0) setReset(numbers, i, 0)
  })
  return { places, outcome: { ...outcome, limits: numbers } }
}
