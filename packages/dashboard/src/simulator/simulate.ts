// Runs a log's requests through limiters, and finds the limits that callers need.

import {
  createLimiter,
  fixedWindow,
  type Limit,
  type Limiter,
  memoryStore,
  slidingCounter,
  slidingWindow,
  tokenBucket,
} from 'slidegate'
import { FullestWindow } from '../../../replay/src/counts/fullest-window.ts'
import { type Need, needsOf } from '../../../replay/src/counts/needed-limits.ts'
import { type KindName, WINDOW_STEPS } from './choices.ts'
import type { Log } from './log.ts'

/** The result of applying one limit to a log. */
export interface Simulated {
  readonly kind: KindName
  readonly admitted: number
  readonly denied: number
  /** Admitted requests in each step of the {@link Timeline}. */
  readonly admittedOverTime: Uint32Array
  readonly deniedOverTime: Uint32Array
  /** Callers that were denied at least once. */
  readonly deniedCallers: number
  readonly deniedMost: readonly DeniedCaller[]
  /** The window in which one caller used the most units. `null` if no request was admitted. */
  readonly fullest: FullestOfAll | null
}

export interface DeniedCaller {
  readonly key: string
  readonly denied: number
  readonly requests: number
}

interface FullestOfAll {
  readonly units: number
  readonly key: string
  /** The time of the last request in the window. */
  readonly atMs: number
}

/** Equal steps from the first request to the last. Their length is a round number. */
export interface Timeline {
  readonly fromMs: number
  readonly stepMs: number
  readonly steps: number
}

const MAX_STEPS = 240
const DAY = 86_400_000
/** Long enough for a log that spans the years 1970 to 3000. */
const LONGEST_STEP = 5 * 365 * DAY
const STEPS = [...WINDOW_STEPS, ...[2, 7, 30, 90, 365].map((days) => days * DAY)]
const MOST_DENIED = 10

/** Number of requests between pauses. */
const STRIDE = 512

/** Number of callers per store. This many fit in the CPU cache, and none are evicted. */
const CALLERS_OF_A_STORE = 10_000

export function timelineOf({ fromMs, toMs }: Log): Timeline {
  const stepsOf = (stepMs: number) => Math.floor(toMs / stepMs) - Math.floor(fromMs / stepMs) + 1
  const stepMs = STEPS.find((each) => stepsOf(each) <= MAX_STEPS) ?? LONGEST_STEP
  return { fromMs: stepMs * Math.floor(fromMs / stepMs), stepMs, steps: stepsOf(stepMs) }
}

/**
 * Sends a log's requests through limiters of these kinds, at the logged times.
 *
 * The service uses the same limiters. Callers don't affect each other, so their requests are simulated caller by caller,
 * which is much faster. Yields its progress from 0 to 1, and can be stopped at each yield.
 *
 * @throws {SlidegateError} if a kind doesn't support these numbers
 */
export function* simulate(
  log: Log,
  kinds: readonly KindName[],
  limit: number,
  windowMs: number,
): Generator<number, Simulated[], void> {
  const { callers, starts, timesMs, costs } = log
  const timeline = timelineOf(log)
  const runs = kinds.map((kind) => new Run(kind, limitOf(kind, limit, windowMs), timeline))
  for (let caller = 0; caller < callers.length; caller++) {
    for (const run of runs) run.begin(callers[caller]!)
    for (let i = starts[caller]!; i < starts[caller + 1]!; i++) {
      if (i % STRIDE === 0) yield i / timesMs.length
      for (const run of runs) run.decide(timesMs[i]!, costs?.[i] ?? 1)
    }
    for (const run of runs) run.end()
  }
  return runs.map((run) => run.read())
}

class Run {
  readonly #kind: KindName
  readonly #limit: Limit
  readonly #timeline: Timeline
  readonly #admittedOverTime: Uint32Array
  readonly #deniedOverTime: Uint32Array
  readonly #deniedCallers: DeniedCaller[] = []
  readonly #options = { cost: 1 }
  #limiter: Limiter
  #callers = 0
  #nowMs = 0
  #admitted = 0
  #denied = 0
  #fullest: FullestOfAll | null = null
  // The current caller's state.
  #key = ''
  #window: FullestWindow
  #admittedOfCaller = 0
  #deniedOfCaller = 0

  constructor(kind: KindName, limit: Limit, timeline: Timeline) {
    this.#kind = kind
    this.#limit = limit
    this.#timeline = timeline
    this.#admittedOverTime = new Uint32Array(timeline.steps)
    this.#deniedOverTime = new Uint32Array(timeline.steps)
    this.#limiter = this.#newLimiter()
    this.#window = new FullestWindow(limit.windowMs)
  }

  begin(key: string): void {
    if (++this.#callers % CALLERS_OF_A_STORE === 0) this.#limiter = this.#newLimiter()
    this.#key = key
    this.#window = new FullestWindow(this.#limit.windowMs)
    this.#admittedOfCaller = 0
    this.#deniedOfCaller = 0
  }

  decide(atMs: number, cost: number): void {
    const step = Math.floor((atMs - this.#timeline.fromMs) / this.#timeline.stepMs)
    this.#nowMs = atMs
    this.#options.cost = cost
    if (this.#limiter.consumeSync(this.#key, this.#options).allowed) {
      this.#admittedOfCaller++
      this.#admittedOverTime[step]!++
      const units = this.#window.add('', atMs, cost)
      if (units > (this.#fullest?.units ?? 0)) this.#fullest = { units, key: this.#key, atMs }
    } else {
      this.#deniedOfCaller++
      this.#deniedOverTime[step]!++
    }
  }

  end(): void {
    const denied = this.#deniedOfCaller
    const requests = this.#admittedOfCaller + denied
    this.#admitted += this.#admittedOfCaller
    this.#denied += denied
    if (denied > 0) this.#deniedCallers.push({ key: this.#key, denied, requests })
  }

  read(): Simulated {
    const deniedMost = this.#deniedCallers.sort((a, b) => b.denied - a.denied || (a.key < b.key ? -1 : 1))
    return {
      kind: this.#kind,
      admitted: this.#admitted,
      denied: this.#denied,
      admittedOverTime: this.#admittedOverTime,
      deniedOverTime: this.#deniedOverTime,
      deniedCallers: deniedMost.length,
      deniedMost: deniedMost.slice(0, MOST_DENIED),
      fullest: this.#fullest,
    }
  }

  #newLimiter(): Limiter {
    const store = memoryStore({ clock: () => this.#nowMs })
    return createLimiter({ name: 'simulator', limits: [this.#limit], store })
  }
}

/** @throws {SlidegateError} if the kind doesn't support these numbers */
export function limitOf(kind: KindName, limit: number, windowMs: number): Limit {
  switch (kind) {
    case 'sliding':
      return slidingWindow({ limit, window: windowMs })
    case 'fixed':
      return fixedWindow({ limit, window: windowMs })
    case 'bucket':
      return tokenBucket({ capacity: limit, refill: limit, interval: windowMs })
    case 'counter':
      return slidingCounter({ limit, window: windowMs })
  }
}

/** Finds the sliding window limits that callers need. Can be stopped at each yield. */
export function* needsOfLog(
  { callers, starts, timesMs, costs }: Log,
  windowMs: number,
): Generator<undefined, Need[], void> {
  const fullest = new Float64Array(callers.length)
  for (let caller = 0; caller < callers.length; caller++) {
    const window = new FullestWindow(windowMs)
    for (let i = starts[caller]!; i < starts[caller + 1]!; i++) {
      if (i % STRIDE === 0) yield
      window.add('', timesMs[i]!, costs?.[i])
    }
    fullest[caller] = window.count
  }
  return needsOf(fullest)
}
