import type { Clock } from '../clock.ts'
import { isCounted, isDecided, limitsOf } from '../decision.ts'
import type { Call } from '../stores/call.ts'
import type { ConsumeOp, ConsumeOutcome, Part, PeekOp, Store } from '../stores/store.ts'
import { joinedOutcome, type Said } from './joined-outcome.ts'
import type { LateCharges } from './late-charges.ts'
import type { LatelyDenied } from './lately-denied.ts'
import { askAll, byPart, numbersIn, type Share, type Told } from './shares.ts'

/** Shares that are asked at the same time, when those before have admitted. */
type Step = readonly Share<ConsumeOp>[]

/** What a share has said to a request, and what it has charged for it. */
interface Charged extends Said {
  readonly told: Told<ConsumeOp>
  /** Requests that it has admitted, of those that the op asks for. */
  readonly admitted: number
}

/** A request whose keys live in several domains, on its way through them. */
export class JoinedRequest {
  readonly #op: ConsumeOp
  readonly #call: Call
  readonly #store: Store
  readonly #late: LateCharges
  readonly #denied: LatelyDenied
  readonly #clock: Clock
  #steps: readonly Step[]
  readonly #asked: Charged[] = []
  /** Those that have not been asked. */
  readonly #unasked: Set<Share<ConsumeOp>>

  constructor(
    op: ConsumeOp,
    shares: readonly Share<ConsumeOp>[],
    call: Call,
    store: Store,
    late: LateCharges,
    denied: LatelyDenied,
    clock: Clock,
  ) {
    this.#op = op
    this.#call = call
    this.#store = store
    this.#late = late
    this.#denied = denied
    this.#clock = clock
    this.#unasked = new Set(shares)
    this.#steps = stepsOf(shares, denied, clock())
  }

  /** Takes the next step. */
  ask(): void {
    const [step, ...later] = this.#steps
    this.#steps = later
    for (const share of step!) this.#unasked.delete(share)
    askAll(this.#store, step!, this.#call, (told, failed, error) => {
      for (const each of told) this.#asked.push(chargedBy(each))
      if (failed.length > 0) {
        this.#failed(failed, error)
      } else if (this.#call.isSettled) {
        // Nobody is told of what this was for.
        this.#giveBack(0)
      } else {
        this.#decided()
      }
    })
  }

  #decided(): void {
    const admitted = Math.min(...this.#asked.map((each) => each.admitted))
    if (admitted === 0) {
      this.#deny()
    } else if (this.#steps.length > 0) {
      this.ask()
    } else {
      this.#giveBack(admitted)
      const said = this.#asked.map((each) => asReturned(each, this.#op, admitted))
      this.#call.resolve([joinedOutcome(this.#op, said)], 0)
    }
  }

  #failed(failed: readonly Share<ConsumeOp>[], error: unknown): void {
    this.#giveBack(0)
    const nowMs = this.#clock()
    for (const { op } of failed) for (const part of op.parts) this.#denied.suspect(part, nowMs, 0)
    this.#call.reject(error)
  }

  #deny(): void {
    this.#giveBack(0)
    const nowMs = this.#clock()
    for (const each of this.#asked) if (each.admitted === 0) this.#suspect(each, nowMs)
    const said = this.#asked.map((each) => asReturned(each, this.#op, 0))
    const known = this.#knownOf(nowMs)
    // A denial without knowledge needs no numbers of others.
    const needsAll = said.some(({ outcome }) => outcome.admitted === 0 && isDecided(outcome.source))
    const unknown = Array.from(this.#unasked).filter(({ places }) =>
      places.some((place) => !known.has(place)),
    )
    if (unknown.length === 0 || !needsAll) {
      this.#answer(said, known)
      return
    }
    askAll(this.#store, unknown.map(lookOf), this.#call, (told) => {
      const looks = told.map(({ share, outcome }) => {
        return { places: share.places, outcome: outcome as ConsumeOutcome }
      })
      this.#answer([...said, ...looks], known)
    })
  }

  #answer(said: readonly Said[], known: ReadonlyMap<number, readonly number[]>): void {
    const { parts, cost } = this.#op
    const nowMs = this.#clock()
    for (const { places, outcome } of said) {
      if (!isDecided(outcome.source) || outcome.costs !== undefined) continue
      const numbers = byPart(parts, [[places, outcome.limits]], numbersIn)
      for (const place of places) this.#denied.hold(parts[place]!, nowMs, cost, numbers[place]!)
    }
    this.#call.resolve([joinedOutcome(this.#op, said, known)], 0)
  }

  /** What was told lately of the parts that were not asked. */
  #knownOf(nowMs: number): Map<number, readonly number[]> {
    const known = new Map<number, readonly number[]>()
    for (const { places } of this.#unasked) {
      for (const place of places) {
        const numbers = this.#denied.numbersOf(this.#op.parts[place]!, nowMs, this.#op.cost)
        if (numbers !== undefined) known.set(place, numbers)
      }
    }
    return known
  }

  /** Remembers which of its parts it was that has denied the request. */
  #suspect({ told: { share }, outcome }: Charged, nowMs: number): void {
    const { parts } = share.op
    const { bannedParts, source, blockedMs = 0, waitMs, limits } = outcome
    const numbers = byPart(parts, [[parts.map((_, i) => i), limits]], numbersIn)
    parts.forEach((part, i) => {
      const ownWaitMs = waitIn(part, numbers[i]!)
      // Without a ban in force, the denial has brought one about for parts without room.
      const isBlocked = bannedParts?.includes(i) ?? ownWaitMs > 0
      const closedMs = isBlocked ? Math.max(ownWaitMs, blockedMs) : ownWaitMs
      if (!isDecided(source)) this.#denied.suspect(part, nowMs, waitMs)
      else if (closedMs > 0) this.#denied.suspect(part, nowMs, closedMs)
    })
  }

  /** All that was charged beyond so many requests. */
  #giveBack(kept: number): void {
    for (const { told, admitted } of this.#asked) {
      if (admitted <= kept) continue
      const { share, together, position } = told
      const outcome = together as ConsumeOutcome
      if (isCounted(outcome.source)) this.#late.add(share.op, outcome, position + kept, position + admitted)
    }
  }
}

/**
 * Keys that were denied lately come first, one domain after another, the one that stays closed for longest before others.
 */
function stepsOf(shares: readonly Share<ConsumeOp>[], denied: LatelyDenied, nowMs: number): Step[] {
  const suspects: { readonly share: Share<ConsumeOp>; readonly opensAtMs: number }[] = []
  const others: Share<ConsumeOp>[] = []
  for (const share of shares) {
    let opensAtMs = Number.NEGATIVE_INFINITY
    for (const part of share.op.parts) {
      opensAtMs = Math.max(opensAtMs, denied.opensAtMs(part, nowMs) ?? Number.NEGATIVE_INFINITY)
    }
    if (opensAtMs > Number.NEGATIVE_INFINITY) suspects.push({ share, opensAtMs })
    else others.push(share)
  }
  suspects.sort((a, b) => b.opensAtMs - a.opensAtMs)
  const rest: Step[] = others.length > 0 ? [others] : []
  return [...suspects.map(({ share }) => [share]), ...rest]
}

function lookOf({ op, places }: Share<ConsumeOp>): Share<PeekOp> {
  const { parts, cost, requestId } = op
  return { op: { type: 'peek', parts, cost, count: 1, requestId }, places }
}

function chargedBy(told: Told<ConsumeOp>): Charged {
  const outcome = told.outcome as ConsumeOutcome
  const admitted = Math.min(outcome.admitted, told.share.op.count)
  return { told, places: told.share.places, outcome, admitted }
}

/** The most that an enforced limit of the part makes a request wait. */
function waitIn({ set }: Part, numbers: readonly number[]): number {
  let waitMs = 0
  set.limits.forEach(({ shadow }, i) => {
    if (!shadow) waitMs = Math.max(waitMs, numbers[3 * i + 1]!)
  })
  return waitMs
}

/** What it has said, as if it had charged no more than so many requests. */
function asReturned({ places, outcome, told, admitted }: Charged, { cost }: ConsumeOp, kept: number): Said {
  if (admitted <= kept || !isCounted(outcome.source)) return { places, outcome }
  const numbers = outcome.limits.slice()
  limitsOf(told.share.op.parts).forEach(({ limit, shadow }, i) => {
    const taken = outcome.costs?.[i] ?? cost
    const used = numbers[3 * i]!
    const fitting = shadow && taken > 0 ? Math.min(kept, Math.floor(Math.max(0, limit - used) / taken)) : kept
    if (used + taken * (fitting + 1) <= limit) numbers[3 * i + 1] = 0
    if (used === 0 && kept === 0) numbers[3 * i + 2] = 0
  })
  return { places, outcome: { ...outcome, limits: numbers } }
}
