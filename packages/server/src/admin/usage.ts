import { setImmediate } from 'node:timers/promises'
import type { AnyKey, Decision } from 'slidegate'
import type { Every } from './every.ts'
import { COARSE, HyperLogLog } from './hyperloglog.ts'
import { keyHash } from './key-hash.ts'
import { shortKey } from './key-text.ts'
import type { TopKey } from './overview.ts'
import { Rates, type SecondCounts, type SpanCounts } from './rates.ts'
import { merged, SpaceSaving, type Summary } from './space-saving.ts'

/** What keys are ranked by. */
export type By = 'requests' | 'denials'

/** What one process knows of the keys of a limiter, as plain JSON. */
export interface TopCounts {
  /** How far back it reaches. */
  readonly overMs: number
  readonly summaries: readonly Summary[]
  /** Of {@link HyperLogLog}: which keys came. */
  readonly callers: string
}

/** Of a limiter, in some KB: how many keys came, and how often those that came most. As plain JSON. */
export interface CallersTold {
  readonly requests: number
  readonly top: readonly Summary[]
  /** Of {@link HyperLogLog}, with fewer registers. */
  readonly sketch: string
}

export type Spelling = (key: string) => string

/** Who asks a limiter. */
export interface Callers {
  /** Different keys of the last minutes, estimated. */
  readonly distinct: number
  /** Share of the requests that the busiest key has made, at least. */
  readonly topShare: number
}

/** Keys of these. */
const GREATEST = 16

/** Keys that are told apart, of each half of the window, of each limiter. */
const COUNTERS = 512

/** The window slides by halves: it reaches back between one and two of them. */
const HALF_MS = 150_000

/** Limiters of which anything is known: of one more nothing is, until one of these was not asked for so long. */
const MAX_LIMITERS = 1024
const IDLE_MS = 2 * HALF_MS

/** What is known of the keys of one half of the window. */
class Half {
  readonly requests = new SpaceSaving(COUNTERS)
  /** Made with the first denial. */
  denials: SpaceSaving | undefined
  readonly callers = new HyperLogLog()
  count = 0
}

/** The keys of the last minutes. */
class SlidingKeys {
  #former: Half | undefined
  #current = new Half()
  #since: number
  #begun: number

  constructor(nowMs: number) {
    this.#since = nowMs
    this.#begun = nowMs
  }

  /** A request: each of its keys is added after it. */
  count(nowMs: number): void {
    this.#goOnTo(nowMs)
    this.#current.count++
  }

  add(key: string, dimension: string, isDenied: boolean): void {
    const half = this.#current
    const hash = dimension === '' ? keyHash(key) : keyHash(key, keyHash(dimension))
    half.callers.add(hash)
    half.requests.add(key, hash, dimension)
    if (!isDenied) return
    half.denials ??= new SpaceSaving(COUNTERS)
    half.denials.add(key, hash, dimension)
  }

  counts(by: By, nowMs: number): TopCounts {
    const halves = this.#halves(nowMs)
    return {
      overMs: Math.round(nowMs - this.#since),
      summaries: halves.flatMap((half) => half[by]?.summary() ?? []),
      callers: unionOf(halves.map(({ callers }) => callers)).text(),
    }
  }

  callers(nowMs: number): CallersTold {
    const halves = this.#halves(nowMs)
    return {
      requests: halves.reduce((sum, half) => sum + half.count, 0),
      top: halves.map(({ requests }) => requests.greatest(GREATEST)),
      sketch: unionOf(halves.map(({ callers }) => callers.folded(COARSE))).text(),
    }
  }

  #halves(nowMs: number): readonly Half[] {
    this.#goOnTo(nowMs)
    return this.#former === undefined ? [this.#current] : [this.#former, this.#current]
  }

  #goOnTo(nowMs: number): void {
    const passedMs = nowMs - this.#begun
    if (passedMs < HALF_MS) return
    this.#former = passedMs < 2 * HALF_MS ? this.#current : undefined
    this.#since = this.#former === undefined ? nowMs : this.#begun
    this.#begun = passedMs < 2 * HALF_MS ? this.#begun + HALF_MS : nowMs
    this.#current = new Half()
  }
}

function unionOf(sketches: readonly HyperLogLog[]): HyperLogLog {
  const [first, ...others] = sketches
  const union = new HyperLogLog(first!.registers.slice())
  for (const other of others) union.merge(other)
  return union
}

interface LimiterUsage {
  readonly rates: Rates
  readonly keys: SlidingKeys
  askedAtMs: number
}

/** Limiters whose callers are counted at a time: some milliseconds. */
const AT_A_TIME = 32

/** How often the clock is read: what is decided in between is counted as of then. */
const TICK_MS = 50

/**
 * What is decided in this process, live: how much, and whose requests. Memory is bounded, whatever keys there are: of a limiter
 * some 250 KB, and with all counters taken 2,048 keys, of 256 characters at most.
 */
export class Usage {
  readonly #now: () => number
  readonly #sinceMs: number
  readonly #limiters = new Map<string, LimiterUsage>()
  readonly #stop: () => void
  readonly #isTicking: boolean
  #nowMs: number
  /** The one that was asked last: most often it is asked again. */
  #last: { readonly name: string; readonly usage: LimiterUsage } | undefined

  /**
   * @param now a monotonic clock, in epoch milliseconds
   * @param every keeps what it says, for to read it takes longer than to count
   */
  constructor(now: () => number = monotonicEpochMs, every?: Every) {
    this.#now = now
    this.#nowMs = now()
    this.#sinceMs = this.#nowMs
    this.#stop = every?.(TICK_MS, () => this.#tick()) ?? (() => {})
    this.#isTicking = every !== undefined
  }

  record(limiter: string, key: AnyKey, decision: Decision): void {
    if (!this.#isTicking) this.#tick()
    const nowMs = this.#nowMs
    const usage = this.#usageOf(limiter, nowMs)
    if (usage === undefined) return
    usage.askedAtMs = nowMs
    usage.rates.add(decision, nowMs)
    usage.keys.count(nowMs)
    const { allowed } = decision
    if (typeof key === 'string') {
      usage.keys.add(shortKey(key), '', !allowed)
      return
    }
    for (const dimension of Object.keys(key)) {
      const each = key[dimension]
      if (typeof each !== 'string') continue
      usage.keys.add(shortKey(each), dimension, !allowed && isBlamed(dimension, decision))
    }
  }

  close(): void {
    this.#stop()
  }

  /** Of whom anything is known: limiters, and domains of Envoy. */
  names(): readonly string[] {
    return Array.from(this.#limiters.keys())
  }

  spansOf(limiter: string): readonly SpanCounts[] {
    return (this.#limiters.get(limiter)?.rates ?? new Rates(this.#sinceMs)).spans(this.#tick())
  }

  /** The last whole seconds of some limiters together, the latest first: what nobody has asked is not counted. */
  secondsOf(limiters: readonly string[], most: number): SecondCounts {
    const nowMs = this.#tick()
    const rates = limiters.flatMap((limiter) => this.#limiters.get(limiter)?.rates ?? [])
    return Rates.seconds(rates, nowMs, most, this.#sinceMs)
  }

  topOf(limiter: string, by: By): TopCounts {
    const keys = this.#limiters.get(limiter)?.keys
    return keys?.counts(by, this.#tick()) ?? { overMs: 0, summaries: [], callers: '' }
  }

  /**
   * Of each limiter; requests are answered in between.
   *
   * @param spelling by limiter: how its keys are told; where there is none, as they are
   */
  async callers(
    spelling: (limiter: string) => Spelling | undefined = () => undefined,
  ): Promise<Readonly<Record<string, CallersTold>>> {
    const told: [string, CallersTold][] = []
    for (const [name, { keys }] of Array.from(this.#limiters)) {
      const callers = keys.callers(this.#tick())
      const spell = spelling(name)
      told.push([name, spell ? { ...callers, top: respelled(callers.top, spell) } : callers])
      if (told.length % AT_A_TIME === 0) await setImmediate()
    }
    return Object.fromEntries(told)
  }

  #tick(): number {
    this.#nowMs = this.#now()
    return this.#nowMs
  }

  #usageOf(limiter: string, nowMs: number): LimiterUsage | undefined {
    if (this.#last?.name === limiter) return this.#last.usage
    const usage = this.#limiters.get(limiter) ?? this.#add(limiter, nowMs)
    this.#last = usage && { name: limiter, usage }
    return usage
  }

  #add(limiter: string, nowMs: number): LimiterUsage | undefined {
    if (this.#limiters.size >= MAX_LIMITERS && !this.#forgetOne(nowMs)) return undefined
    const usage = { rates: new Rates(this.#sinceMs), keys: new SlidingKeys(nowMs), askedAtMs: nowMs }
    this.#limiters.set(limiter, usage)
    return usage
  }

  /** Looks at one of them, each time at another. */
  #forgetOne(nowMs: number): boolean {
    const [name, usage] = this.#limiters.entries().next().value!
    this.#limiters.delete(name)
    this.#last = undefined
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
      const [dimension, key] = partsOf(word)
      return { ...(dimension !== '' && { dimension }), key, count, error }
    })
}

/** The same with other keys. */
export function respelled(summaries: readonly Summary[], spell: Spelling): Summary[] {
  return summaries.map(({ floor, counted }) => ({
    floor,
    counted: counted.map((each) => {
      const [dimension, key] = partsOf(each.word)
      return { ...each, word: `${dimension}=${spell(key)}` }
    }),
  }))
}

function partsOf(word: string): readonly [dimension: string, key: string] {
  const end = word.indexOf('=')
  return [word.slice(0, end), word.slice(end + 1)]
}

/** Of each limiter, what several processes know of who asks it. */
export async function callersTogether(
  processes: readonly Readonly<Record<string, CallersTold>>[],
): Promise<ReadonlyMap<string, Callers>> {
  const byName = new Map<string, CallersTold[]>()
  for (const [name, told] of processes.flatMap(Object.entries)) {
    byName.set(name, [...(byName.get(name) ?? []), told])
  }
  const callers = new Map<string, Callers>()
  for (const [name, each] of byName) {
    callers.set(name, together(each))
    if (callers.size % AT_A_TIME === 0) await setImmediate()
  }
  return callers
}

function together(each: readonly CallersTold[]): Callers {
  const requests = each.reduce((sum, told) => sum + told.requests, 0)
  const [first] = merged(each.flatMap(({ top }) => top))
  return {
    distinct: distinctIn(each.map(({ sketch }) => sketch)),
    topShare: first === undefined ? 0 : (first.count - first.error) / requests,
  }
}

/** How many different keys came to several processes, estimated. */
export function distinctIn(sketches: readonly unknown[]): number {
  const known = sketches.flatMap((text) => HyperLogLog.of(text) ?? [])
  if (known.length === 0) return 0
  const size = Math.min(...known.map(({ registers }) => registers.length))
  return unionOf(known.filter(({ registers }) => registers.length === size)).count()
}

/** Whether a limit of this dimension has denied; where nobody says which has, it may be this one's ban. */
function isBlamed(dimension: string, { deniedBy }: Decision): boolean {
  if (deniedBy.length === 0) return true
  const own = `${dimension}.`
  return deniedBy.some((name) => name.startsWith(own))
}

function monotonicEpochMs(): number {
  return performance.timeOrigin + performance.now()
}
