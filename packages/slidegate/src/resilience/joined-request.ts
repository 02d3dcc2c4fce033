import { isCounted, isDecided, limitsOf } from '../decision.ts'
import type { Call } from '../stores/call.ts'
import type { ConsumeOp, ConsumeOutcome, PeekOp, Store } from '../stores/store.ts'
import { joinedOutcome, type Said } from './joined-outcome.ts'
import type { LateCharges } from './late-charges.ts'
import { askAll, type Share, type Told } from './shares.ts'

/** The answer of one domain, and what it charged. */
interface Charged extends Said {
  readonly told: Told<ConsumeOp>
  /** How many of the op's requests the domain admitted. */
  readonly admitted: number
}

/**
 * Asks all domains of a request at once. If one denies or fails, the charges of the others are returned. Seen values
 * can't be returned, so their domains are asked last, one by one, after all others admitted.
 */
export function consumeAcross(
  op: ConsumeOp,
  shares: readonly Share<ConsumeOp>[],
  call: Call,
  store: Store,
  late: LateCharges,
): void {
  const charged: Charged[] = []
  const steps = stepsOf(shares)

  /** Returns all charges beyond `kept` requests, and says what the domains report without them. */
  const giveBack = (kept: number): Said[] => {
    for (const { told, admitted } of charged) {
      const outcome = told.together as ConsumeOutcome
      if (admitted <= kept || !isCounted(outcome.source)) continue
      late.add(told.share.op, outcome, told.position + kept, told.position + admitted)
    }
    return charged.map((each) => asReturned(each, op, kept))
  }

  const deny = (): void => {
    const said = giveBack(0)
    const unasked = steps.flat()
    // Without a decision there are no numbers worth asking for.
    const isDenied = said.some(({ outcome }) => outcome.admitted === 0 && isDecided(outcome.source))
    if (unasked.length === 0 || !isDenied) {
      call.resolve([joinedOutcome(op, said)], 0)
      return
    }
    askAll(store, unasked.map(lookOf), call, (told) => {
      const looks = told.map(({ share, outcome }) => {
        return { places: share.places, outcome: outcome as ConsumeOutcome }
      })
      call.resolve([joinedOutcome(op, [...said, ...looks])], 0)
    })
  }

  const ask = (): void => {
    askAll(store, steps.shift()!, call, (told, errors) => {
      charged.push(...told.map(chargedBy))
      if (errors.length > 0) {
        giveBack(0)
        call.reject(errors[0])
        return
      }
      const admitted = Math.min(...charged.map((each) => each.admitted))
      // Nobody waits for the answer any more.
      if (call.isSettled) giveBack(0)
      else if (admitted === 0) deny()
      else if (steps.length > 0) ask()
      else call.resolve([joinedOutcome(op, giveBack(admitted))], 0)
    })
  }
  ask()
}

function stepsOf(shares: readonly Share<ConsumeOp>[]): (readonly Share<ConsumeOp>[])[] {
  const keepsValues = ({ op }: Share<ConsumeOp>) => op.parts.some(({ set }) => set.keeps.has('value'))
  const others = shares.filter((share) => !keepsValues(share))
  const last = shares.filter(keepsValues).map((share) => [share])
  return others.length > 0 ? [others, ...last] : last
}

function lookOf({ op, places }: Share<ConsumeOp>): Share<PeekOp> {
  const { parts, cost, requestId, value } = op
  return { op: { type: 'peek', parts, cost, count: 1, requestId, value }, places }
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
  const costs = outcome.costs?.slice()
  limitsOf(told.share.op.parts).forEach(({ limit, shadow, kind }, i) => {
    const taken = costs?.[i] ?? cost
    const used = numbers[3 * i]!
    if (kind.entries?.are === 'value') {
      // It was seen, and that is not taken back.
      if (kept > 0 || (shadow && used + taken > limit)) return
      numbers[3 * i] = used + taken
      numbers[3 * i + 1] = 0
      costs![i] = 0
      return
    }
    const fitting = shadow && taken > 0 ? Math.min(kept, Math.floor(Math.max(0, limit - used) / taken)) : kept
    if (used + taken * (fitting + 1) <= limit) numbers[3 * i + 1] = 0
    if (used === 0 && kept === 0) numbers[3 * i + 2] = 0
  })
  return { places, outcome: { ...outcome, limits: numbers, ...(costs && { costs }) } }
}
