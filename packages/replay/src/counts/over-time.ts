// Counts decisions over time, in steps whose length grows with the log.

const [SECOND, MINUTE, HOUR, DAY] = [1000, 60_000, 3_600_000, 86_400_000]

/** Step lengths. Each is a multiple of the previous one. */
const STEPS: readonly number[] = [
  ...[10, 100, SECOND, 5 * SECOND, 10 * SECOND, 30 * SECOND],
  ...[MINUTE, 5 * MINUTE, 10 * MINUTE, 30 * MINUTE],
  ...[HOUR, 3 * HOUR, 6 * HOUR, 12 * HOUR],
  ...Array.from({ length: 16 }, (_, i) => DAY * 2 ** i),
]

/** Maximum number of stored steps. */
const MAX_STEPS = 480

export interface Step {
  admitted: number
  denied: number
  /** The highest usage by one caller, per limit. Covers the windows that end at an admission in this step. */
  fullest: number[]
}

export interface Steps {
  /** Start of the first step in epoch milliseconds, a multiple of `stepMs`. */
  readonly fromMs: number
  readonly stepMs: number
  /** Consecutive steps, including empty ones. */
  readonly steps: readonly Readonly<Step>[]
}

/** Counts decisions over time. Steps get longer as the log gets longer. */
export class OverTime {
  readonly #limits: number
  #finest = 0
  #steps = new Map<number, Step>()

  constructor(limits: number) {
    this.#limits = limits
  }

  admitted(timeMs: number, within: readonly number[]): void {
    const step = this.#stepAt(timeMs)
    step.admitted++
    for (let i = 0; i < this.#limits; i++) step.fullest[i] = Math.max(step.fullest[i]!, within[i]!)
  }

  denied(timeMs: number): void {
    this.#stepAt(timeMs).denied++
  }

  /** Returns up to `most` steps, from the first to the last one with a request. */
  read(most: number): Steps {
    let finest = this.#finest
    const [firstMs, lastMs] = this.#span()
    const lengthIn = (stepMs: number) => Math.floor(lastMs / stepMs) - Math.floor(firstMs / stepMs) + 1
    while (lengthIn(STEPS[finest]!) > most && finest < STEPS.length - 1) finest++
    const stepMs = STEPS[finest]!
    const first = Math.floor(firstMs / stepMs)
    const found = this.#inStepsOf(finest)
    const steps = Array.from({ length: lengthIn(stepMs) }, (_, i) => found.get(first + i) ?? this.#empty())
    return { fromMs: first * stepMs, stepMs, steps: this.#steps.size === 0 ? [] : steps }
  }

  #stepAt(timeMs: number): Step {
    const number = Math.floor(timeMs / STEPS[this.#finest]!)
    let step = this.#steps.get(number)
    if (step === undefined) {
      step = this.#empty()
      this.#steps.set(number, step)
      if (this.#steps.size > MAX_STEPS) {
        this.#steps = this.#inStepsOf(this.#finest + 1)
        this.#finest++
        return this.#stepAt(timeMs)
      }
    }
    return step
  }

  #inStepsOf(finest: number): Map<number, Step> {
    const steps = new Map<number, Step>()
    const ratio = STEPS[finest]! / STEPS[this.#finest]!
    for (const [number, { admitted, denied, fullest }] of this.#steps) {
      const into = Math.floor(number / ratio)
      const step = steps.get(into) ?? this.#empty()
      step.admitted += admitted
      step.denied += denied
      step.fullest = step.fullest.map((most, i) => Math.max(most, fullest[i]!))
      steps.set(into, step)
    }
    return steps
  }

  #span(): readonly [firstMs: number, lastMs: number] {
    const numbers = Array.from(this.#steps.keys())
    const stepMs = STEPS[this.#finest]!
    return numbers.length === 0 ? [0, 0] : [Math.min(...numbers) * stepMs, Math.max(...numbers) * stepMs]
  }

  #empty(): Step {
    return { admitted: 0, denied: 0, fullest: Array(this.#limits).fill(0) }
  }
}

const MINUTE_MS = 60_000
const DAY_MS = 86_400_000

/** Formats the start of a step in UTC, as precisely as the step's length requires. */
export function timeIn(ms: number, stepMs: number): string {
  const [date = '', clock = ''] = new Date(ms).toISOString().split(/[TZ]/)
  if (stepMs >= DAY_MS) return date
  const length = stepMs >= MINUTE_MS ? 'hh:mm'.length : stepMs >= 1000 ? 'hh:mm:ss'.length : undefined
  return `${date} ${clock.slice(0, length)}`
}
