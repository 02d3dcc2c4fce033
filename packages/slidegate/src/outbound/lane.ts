import type { Decision } from '../decision.ts'

/** What this process knows of a key, as long as requests of it are under way. */
export class Lane {
  /** How often in a row its requests were refused. */
  refusals = 0
  /** What was last known of it. */
  latest: Decision | undefined
  readonly #emptied: () => void
  #users = 0
  #learning: Promise<void> | undefined
  #learntAtMs = Number.NEGATIVE_INFINITY

  constructor(emptied: () => void) {
    this.#emptied = emptied
  }

  enter(): void {
    this.#users++
  }

  leave(): void {
    if (--this.#users === 0) this.#emptied()
  }

  /** Whether an admission that was asked for then was decided by all that has been learnt. */
  isInformed(askedAtMs: number): boolean {
    return this.#learning === undefined && askedAtMs >= this.#learntAtMs
  }

  /** Nothing where nothing is being learnt. */
  get learning(): Promise<void> | undefined {
    return this.#learning
  }

  /** One lesson after the other. What fails is not learnt: the next answer says it again. */
  learn(heed: () => Promise<void>): void {
    this.enter()
    const learning = (this.#learning ?? Promise.resolve())
      .then(heed)
      .catch(() => {})
      .then(() => {
        this.#learntAtMs = performance.now()
        if (this.#learning === learning) this.#learning = undefined
        this.leave()
      })
    this.#learning = learning
  }
}

const lanesOf = new WeakMap<object, Map<string, Lane>>()

/** The lane of a limiter's key, however many send by it; there is one while somebody is in it. */
export function laneOf(limiter: object, key: string): Lane {
  const lanes = lanesOf.get(limiter) ?? new Map<string, Lane>()
  lanesOf.set(limiter, lanes)
  let lane = lanes.get(key)
  if (lane === undefined) {
    lane = new Lane(() => lanes.delete(key))
    lanes.set(key, lane)
  }
  return lane
}
