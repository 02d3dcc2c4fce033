import type { AnyKey, Decision } from 'slidegate'
import { shortKey } from './key-text.ts'
import { Rates, type SpanCounts } from './rates.ts'
import { merged, SpaceSaving, type Summary } from './space-saving.ts'

/** What keys are ranked by. */
export type By = 'requests' | 'denials'

/** How often a key came: `count` at most, and `count - error` at least. */
export interface TopKey {
  readonly key: string
  /** Where the limiter has dimensions: that of the key. */
  readonly dimension?: string
  readonly count: number
  readonly error: number
}

/** What one process knows of the keys of a limiter, as plain JSON. */
export interface TopCounts {
  /** How far back it reaches. */
  readonly overMs: number
  readonly summaries: readonly Summary[]
}

/** Keys that are told apart, of each half of the window, of each limiter. */
const COUNTERS = 512

/** The window slides by halves: it reaches back between one and two of them. */
const HALF_MS = 150_000

/** Limiters of which anything is known: of one more nothing is, until one of these was not asked for so long. */
const MAX_LIMITERS = 1024
const IDLE_MS = 2 * HALF_MS

/** The most frequent keys of the last minutes. */
class SlidingTop {
  #former: SpaceSaving | undefined
  #current = new SpaceSaving(COUNTERS)
  #since: number
  #begun: number

  constructor(nowMs: number) {
    this.#since = nowMs
    this.#begun = nowMs
  }

  add(word: string, nowMs: number): void {
    this.#goOnTo(nowMs)
    this.#current.add(word)
  }

  counts(nowMs: number): TopCounts {
    this.#goOnTo(nowMs)
    const both = this.#former === undefined ? [this.#current] : [this.#former, this.#current]
    return { overMs: Math.round(nowMs - this.#since), summaries: both.map((half) => half.summary()) }
  }

  #goOnTo(nowMs: number): void {
    const passedMs = nowMs - this.#begun
    if (passedMs < HALF_MS) return
    this.#former = passedMs < 2 * HALF_MS ? this.#current : undefined
    this.#since = this.#former === undefined ? nowMs : this.#begun
    this.#begun = passedMs < 2 * HALF_MS ? this.#begun + HALF_MS : nowMs
    this.#current = new SpaceSaving(COUNTERS)
  }
}

interface LimiterUsage {
  readonly rates: Rates
  readonly requests: SlidingTop
  /** Made with the first denial. */
  denials: SlidingTop | undefined
  askedAtMs: number
}

/**
 * What is decided in this process, live: how much, and whose requests. Memory is bounded, whatever keys there are: some
 * 16 KB for a limiter, and with all counters taken 2,048 keys, of 256 characters at most.
 */
export class Usage {
  readonly #now: () => number
  readonly #sinceMs: number
  readonly #limiters = new Map<string, LimiterUsage>()

  /** @param now a monotonic clock, in milliseconds */
  constructor(now: () => number = () => performance.now()) {
    this.#now = now
    this.#sinceMs = now()
  }

  record(limiter: string, key: AnyKey, decision: Decision): void {
    const nowMs = this.#now()
    const usage = this.#limiters.get(limiter) ?? this.#add(limiter, nowMs)
    if (usage === undefined) return
    usage.askedAtMs = nowMs
    usage.rates.add(decision, nowMs)
    const { allowed } = decision
    if (!allowed) usage.denials ??= new SlidingTop(nowMs)
    if (typeof key === 'string') {
      const word = wordOf('', key)
      usage.requests.add(word, nowMs)
      if (!allowed) usage.denials!.add(word, nowMs)
      return
    }
    for (const dimension of Object.keys(key)) {
      const each = key[dimension]
      if (typeof each !== 'string') continue
      const word = wordOf(dimension, each)
      usage.requests.add(word, nowMs)
      if (!allowed && isBlamed(dimension, decision)) usage.denials!.add(word, nowMs)
    }
  }

  /** Of whom anything is known: limiters, and domains of Envoy. */
  names(): readonly string[] {
    return Array.from(this.#limiters.keys())
  }

  spansOf(limiter: string): readonly SpanCounts[] {
    return (this.#limiters.get(limiter)?.rates ?? new Rates(this.#sinceMs)).spans(this.#now())
  }

  topOf(limiter: string, by: By): TopCounts {
    return this.#limiters.get(limiter)?.[by]?.counts(this.#now()) ?? { overMs: 0, summaries: [] }
  }

  #add(limiter: string, nowMs: number): LimiterUsage | undefined {
    if (this.#limiters.size >= MAX_LIMITERS && !this.#forgetOne(nowMs)) return undefined
    const usage = {
      rates: new Rates(this.#sinceMs),
      requests: new SlidingTop(nowMs),
      denials: undefined,
      askedAtMs: nowMs,
    }
    this.#limiters.set(limiter, usage)
    return usage
  }

  /** Looks at one of them, each time at another. */
  #forgetOne(nowMs: number): boolean {
    const [name, usage] = this.#limiters.entries().next().value!
    this.#limiters.delete(name)
    const isIdle = nowMs - usage.askedAtMs >= IDLE_MS
    if (!isIdle) this.#limiters.set(name, usage)
    return isIdle
  }
}

/** @param processes what each knows */
export function topKeys(processes: readonly TopCounts[], count: number): TopKey[] {
  return merged(processes.flatMap(({ summaries }) => summaries))
    .slice(0, count)
    .map(({ word, count, error }) => {
      const dimension = word.slice(0, word.indexOf('='))
      const key = word.slice(dimension.length + 1)
      return { ...(dimension !== '' && { dimension }), key, count, error }
    })
}

/**
 * No dimension has `=` in its name. With something before them, numbers are no numbers to V8, which before Node 22.22.2
 * hashed these to themselves, so that whoever chooses keys could make look-ups slow.
 */
function wordOf(dimension: string, key: string): string {
  return `${dimension}=${shortKey(key)}`
}

/** Whether a limit of this dimension has denied; where nobody says which has, it may be this one's ban. */
function isBlamed(dimension: string, { deniedBy }: Decision): boolean {
  if (deniedBy.length === 0) return true
  const own = `${dimension}.`
  return deniedBy.some((name) => name.startsWith(own))
}
