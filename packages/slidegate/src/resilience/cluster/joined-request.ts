import { isCounted } from '../../decision.ts'
import { limitsOf, roomsOf } from '../../stores/outcome.ts'
import type { Call } from '../../stores/store.ts'
import { type ConsumeOp, type ConsumeOutcome, partsInForce, type Store } from '../../stores/store.ts'
import type { LateCharges } from '../late-charges.ts'
import { joinedOutcome, type Said } from './joined-outcome.ts'
import { askAll, type Share, type Told } from './shares.ts'

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
    else if (!isLost)
      call.resolve(
        [
          joinedOutcome(
            op,
            charged.map((each) => asReturned(each, op, kept)),
          ),
        ],
        0,
      )
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
    const used = numbers[3 * i]!
    const fitting = shadow ? Math.min(kept, rooms[i]!) : kept
    if (used + cost * (fitting + 1) <= limit) numbers[3 * i + 1] = 0
    if (used === 0 && kept === 0) numbers[3 * i + 2] = 0
  })
  return { places, outcome: { ...outcome, limits: numbers } }
}
