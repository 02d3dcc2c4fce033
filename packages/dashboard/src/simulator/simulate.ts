// Runs the requests of a log through limiters, and finds the limits that callers need.

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
import { type KindName, WINDOW_STEPS } from './choices.ts'
import type { Log } from './log.ts'

/** What a limit would have done with the requests of a log. */
export interface Simulated {
  readonly kind: KindName
  readonly admitted: number
  readonly denied: number
  /** By the steps of {@link Timeline}. */
  readonly admittedOverTime: Uint32Array
  readonly deniedOverTime: Uint32Array
  /** Callers that were denied at least once. */
  readonly deniedCallers: number
  readonly deniedMost: readonly DeniedCaller[]
  /** The most that one caller was admitted within any window of that length, wherever it begins; `null` where nobody was. */
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
  /** Of the last request within it. */
  readonly atMs: number
}

/** Equal steps of time, as people count it, from that of the first request to that of the last. */
export interface Timeline {
  readonly fromMs: number
  readonly stepMs: number
  readonly steps: number
}

const MAX_STEPS = 240
const DAY = 86_400_000
/** A log may tell of the years from 1970 to 3000. */
const LONGEST_STEP = 5 * 365 * DAY
const STEPS = [...WINDOW_STEPS, ...[2, 7, 30, 90, 365].map((days) => days * DAY)]
const MOST_DENIED = 10

/** Requests between two pauses. */
const STRIDE = 512

/** Callers of one store: fewer than it holds, so that none is forgotten, and so few that they are at hand. */
const CALLERS_OF_A_STORE = 10_000

export function timelineOf({ fromMs, toMs }: Log): Timeline {
  const stepsOf = (stepMs: number) => Math.floor(toMs / stepMs) - Math.floor(fromMs / stepMs) + 1
  const stepMs = STEPS.find((each) => stepsOf(each) <= MAX_STEPS) ?? LONGEST_STEP
  return { fromMs: stepMs * Math.floor(fromMs / stepMs), stepMs, steps: stepsOf(stepMs) }
}

/**
 * Sends the requests of a log, at the time of the log, through limiters of these kinds: those that a service has. Callers are
 * counted apart, so they may come one after another, which takes a fraction of the time. Yields how much is done, from 0 to 1, and
 * may be left there.
 *
 * @throws {SlidegateError} where a kind cannot hold these numbers
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
  // Of the caller whose turn it is.
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

/** @throws {SlidegateError} where the kind cannot hold these numbers */
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

/** The least limit that would never deny such a share of the callers. */
export interface Need {
  readonly share: number
  readonly limit: number
}

const SHARES = [0.9, 0.95, 0.99, 0.999, 1]

/**
 * What callers need of a window that slides: it never denies those whose own fullest window, of all that they asked for, is
 * within the limit. Pauses now and then, and may be left there.
 */
export function* needsOf(
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
  fullest.sort()
  return SHARES.map((share) => ({ share, limit: fullest[Math.ceil(share * callers.length) - 1] ?? 1 }))
}
