import type { Limit } from '../limits/limit.ts'
import type { LimitSet } from '../limits/limit-set.ts'
import { FOREVER } from '../limits/override.ts'
import { limitsInForce } from '../stores/outcome.ts'
import type { ConsumeOp, ConsumeOutcome, Outcome, Part } from '../stores/store.ts'
import { KeyRing, placeOf } from './by-key.ts'

/** What the store said of a request that it denied, and how that reads as time passes. */
class Denial {
  readonly set: LimitSet
  readonly cost: number
  readonly #outcome: ConsumeOutcome
  /** By the numbers that were in force. */
  readonly #limits: readonly Limit[]
  readonly #sentAtMs: number
  /** For so long after it was sent it is certain that the store would deny it again. */
  readonly #lastsMs: number

  constructor(op: ConsumeOp, outcome: ConsumeOutcome, sentAtMs: number, maxStaleMs: number) {
    this.set = op.parts[0]!.set
    this.cost = op.cost
    this.#outcome = outcome
    this.#sentAtMs = sentAtMs
    let waitMs = 0
    this.#limits = limitsInForce(op, outcome)
    this.#limits.forEach(({ shadow }, i) => {
      if (!shadow) waitMs = Math.max(waitMs, outcome.limits[3 * i + 1]!)
    })
    // A denial after the ban counts towards the next one, so the store has to see it.
    waitMs = outcome.ban?.ms ?? waitMs
    // The store's clock shows whole milliseconds, and may have been close to its next when it decided.
    const endsMs = outcome.overrides?.map((each) => each?.ruleMs || FOREVER) ?? []
    this.#lastsMs = Math.min(waitMs, maxStaleMs, ...endsMs) - 1
  }

  /** Whole milliseconds since it was asked for; `undefined` where the store has to be asked. */
  ageAt(nowMs: number): number | undefined {
    const passedMs = nowMs - this.#sentAtMs
    return passedMs >= 0 && passedMs <= this.#lastsMs ? Math.floor(passedMs) : undefined
  }

  outcomeAfter(ageMs: number): ConsumeOutcome {
    const limits = numbersAfter(ageMs, this.#outcome.limits, this.#limits, this.cost)
    const { atMs, ban, overrides } = this.#outcome
    const denied: ConsumeOutcome = {
      ...{ source: 'denyCache', atMs: atMs + ageMs, admitted: 0, limits, waitMs: 0 },
      ...(overrides && { overrides }),
    }
    return ban && ban.parts.length > 0 ? { ...denied, ban: { ...ban, ms: ban.ms - ageMs } } : denied
  }
}

/** How the numbers of a denial, three per limit, read when so many whole milliseconds have passed. */
function numbersAfter(
  ageMs: number,
  numbers: readonly number[],
  declared: readonly Limit[],
  cost: number,
): number[] {
  const limits = numbers.slice()
  for (let i = 0, place = 0; i < declared.length; i++, place += 3) {
    const waitMs = limits[place + 1]!
    const resetMs = limits[place + 2]!
    // One limit may open before the others do: from then on it has room for the cost.
    if (waitMs > 0 && waitMs <= ageMs) {
      limits[place] = Math.min(limits[place]!, declared[i]!.limit - cost)
    }
    limits[place + 1] = waitMs > ageMs ? waitMs - ageMs : 0
    limits[place + 2] = resetMs > ageMs ? resetMs - ageMs : 0
  }
  return limits
}

/** Different requests for one key whose denials are held. */
const MAX_PER_KEY = 4

/** Places in the table of changes. */
const PLACES = 4096

/**
 * The denials of up to `maxKeys` keys. A key stays when its denials are forgotten, for it may soon be denied again, and
 * goes when its place in the ring is needed.
 */
export class Denials {
  readonly #maxStaleMs: number
  /** Of each key the oldest first. */
  readonly #keys: KeyRing<Denial[]>
  /**
   * How often keys have changed, at the place of their hash: a denial is not held if its key has changed since it was
   * asked for. Where two keys share a place, one is asked for once more than it need be.
   */
  readonly #changes = new Uint32Array(PLACES)
  /** Whoever hammers a key is told the same for as long as the millisecond lasts. */
  #lastDenial: Denial | undefined
  #lastAgeMs = 0
  #lastAnswer: readonly Outcome[] = []

  constructor(maxStaleMs: number, maxKeys: number) {
    this.#maxStaleMs = maxStaleMs
    this.#keys = new KeyRing(maxKeys)
  }

  find(op: ConsumeOp, nowMs: number): readonly Outcome[] | undefined {
    const part = op.parts[0]!
    const known = this.#keys.get(part)
    if (known === undefined) return undefined
    for (let i = 0; i < known.length; i++) {
      const denial = known[i]!
      if (denial.cost === op.cost && denial.set === part.set) return this.#answerOf(denial, nowMs)
    }
    return undefined
  }

  changesOf(key: string): number {
    return this.#changes[placeOf(key, PLACES)]!
  }

  hold(op: ConsumeOp, outcome: ConsumeOutcome, sentAtMs: number): void {
    const part = op.parts[0]!
    const denials = this.#keys.get(part) ?? this.#keys.add(part, [])
    const denial = new Denial(op, outcome, sentAtMs, this.#maxStaleMs)
    const same = denials.findIndex(({ set, cost }) => set === denial.set && cost === denial.cost)
    if (same >= 0) denials.splice(same, 1)
    else if (denials.length === MAX_PER_KEY) denials.shift()
    denials.push(denial)
  }

  /** These keys may have changed. */
  forget(parts: readonly Part[]): void {
    for (const part of parts) {
      this.#changes[placeOf(part.key, PLACES)]!++
      const known = this.#keys.get(part)
      if (known !== undefined) known.length = 0
    }
  }

  #answerOf(denial: Denial, nowMs: number): readonly Outcome[] | undefined {
    const ageMs = denial.ageAt(nowMs)
    if (ageMs === undefined) return undefined
    if (denial !== this.#lastDenial || ageMs !== this.#lastAgeMs) {
      this.#lastAnswer = [denial.outcomeAfter(ageMs)]
      this.#lastDenial = denial
      this.#lastAgeMs = ageMs
    }
    return this.#lastAnswer
  }
}
