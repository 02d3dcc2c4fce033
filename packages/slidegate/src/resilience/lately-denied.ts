import type { Part } from '../stores/store.ts'
import { KeyRing } from './by-key.ts'
import { numbersAfter } from './denials.ts'

/** Keys that are remembered at most. */
const MAX_KEYS = 10_000

/**
 * A key that was denied is under suspicion for so long at least, even where it is expected to be admitted sooner: of all
 * that a caller has under way when his limit opens, it is the most that are denied.
 */
const LEAST_MS = 1000

/** And for so long at most: a key that was let go early pays for it with a longer way. */
const MOST_MS = 60_000

/** What a limit was told to hold is repeated for so long. */
const FRESH_MS = 1000

/** What was last told of a key in a denial. */
interface Told {
  /** Until when it is asked before others. */
  suspectUntilMs: number
  /** When it is expected to have room. */
  opensAtMs: number
  /** Three numbers per limit, what they were told for, and when. */
  numbers: readonly number[]
  set: Part['set'] | undefined
  cost: number
  toldAtMs: number
}

/** Which keys were denied lately, by limits of their own or since nobody knows of them, and what the others were told then. */
export class LatelyDenied {
  readonly #keys = new KeyRing<Told>(MAX_KEYS)

  /** When a key that was denied lately is expected to have room; nothing for any other. */
  opensAtMs(part: Part, nowMs: number): number | undefined {
    const told = this.#keys.get(part)
    return told !== undefined && told.suspectUntilMs > nowMs ? told.opensAtMs : undefined
  }

  /** Denied by this key, for so many milliseconds. */
  suspect(part: Part, nowMs: number, waitMs: number): void {
    const told = this.#toldOf(part)
    told.opensAtMs = nowMs + Math.min(waitMs, MOST_MS)
    told.suspectUntilMs = nowMs + Math.min(Math.max(waitMs, LEAST_MS), MOST_MS)
  }

  /** Three numbers per limit, in an answer to a request of this cost. */
  hold(part: Part, nowMs: number, cost: number, numbers: readonly number[]): void {
    const told = this.#toldOf(part)
    told.numbers = numbers
    told.set = part.set
    told.cost = cost
    told.toldAtMs = nowMs
  }

  /** The numbers that were told of the same limits for the same cost a moment ago, as they read now. */
  numbersOf(part: Part, nowMs: number, cost: number): readonly number[] | undefined {
    const told = this.#keys.get(part)
    if (told === undefined || told.set !== part.set || told.cost !== cost) return undefined
    const ageMs = nowMs - told.toldAtMs
    if (!(ageMs >= 0 && ageMs < FRESH_MS)) return undefined
    return numbersAfter(Math.floor(ageMs), told.numbers, part.set, cost)
  }

  /** These keys have changed. */
  forget(parts: readonly Part[]): void {
    for (const part of parts) {
      const told = this.#keys.get(part)
      if (told === undefined) continue
      told.suspectUntilMs = Number.NEGATIVE_INFINITY
      told.set = undefined
    }
  }

  #toldOf(part: Part): Told {
    const known = this.#keys.get(part)
    if (known !== undefined) return known
    const never = Number.NEGATIVE_INFINITY
    return this.#keys.add(part, {
      suspectUntilMs: never,
      opensAtMs: never,
      numbers: [],
      set: undefined,
      cost: 0,
      toldAtMs: never,
    })
  }
}
