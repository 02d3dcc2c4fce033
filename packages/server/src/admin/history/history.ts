// Counts for limiters and their keys: by minute for an hour, by hour for a week.

import { randomBytes } from 'node:crypto'
import { setImmediate } from 'node:timers/promises'
import type { Logger } from 'pino'
import { messageOf } from '../../../../replay/src/errors.ts'
import type { Service } from '../../service/service.ts'
import type { CountSeries } from '../api-types.ts'
import type { SingleKey } from '../keys.ts'
import { UnreachableError } from '../redis-link.ts'
import type { Every } from '../timer.ts'
import type { LimiterMinute, Usage } from '../usage.ts'
import type { HistoryStore } from './history-store.ts'
import {
  type Batch,
  busiest,
  type Counts,
  type Entries,
  KEYS_PER_ORDER,
  RANGES,
  type RangeName,
} from './records.ts'
import { keySeries, limiterSeries } from './series.ts'
import { storedWord, WatchList } from './watch-list.ts'

/** How often the clock is read. The start of a minute is detected with up to this delay. */
const EVERY_MS = 100

/** A failed batch is sent again after this time. */
const RETRY_MS = 1000

/** Maximum number of batches (one per minute) waiting to be stored. If there are more, the oldest is dropped. */
export const MAX_PENDING = 60

/** A minute or hour is shown only this long after its end. By then, all instances have written their counts. */
const SETTLE_MS = 10_000

/** Number of limiters to process before yielding to the event loop. They take a few milliseconds. */
const AT_A_TIME = 8

/** With more limiters than this, each keeps fewer keys. */
const LIMITERS_WITH_ALL_KEYS = 200

interface HistoryOptions {
  readonly service: Service
  readonly usage: Usage
  readonly store: HistoryStore
  readonly every: Every
  readonly log: Logger
  /** The wall clock, in epoch milliseconds. */
  readonly now: () => number
}

/**
 * Keeps counts for limiters and some of their keys for up to a week.
 *
 * At the end of each minute, this process sends its counts to the store in one batch. Requests never wait for
 * this.
 */
export class History {
  readonly watchList: WatchList
  readonly #options: HistoryOptions
  readonly #process = randomBytes(4).toString('hex')
  readonly #stop: () => void
  #minute: number
  #lastNumber = 0
  #pending: Batch[] = []
  #sending: Promise<void> | undefined
  #retryAtMs = 0
  #isFailing = false

  constructor(options: HistoryOptions) {
    this.#options = options
    this.watchList = new WatchList(options)
    this.#minute = this.#minuteNow()
    this.#stop = options.every(EVERY_MS, () => void this.run())
    void this.watchList.apply()
  }

  /** Closes the counts for a minute that has passed, and sends pending batches. Never rejects. */
  async run(): Promise<void> {
    const minute = this.#minuteNow()
    if (minute !== this.#minute) {
      const ended = this.#minute
      this.#minute = minute
      await this.#end(ended)
      await this.watchList.apply()
    }
    if (performance.now() >= this.#retryAtMs) await this.#send()
  }

  /**
   * Returns the counts for a limiter, or for one of its keys.
   *
   * @throws {ServiceError} if they can't be read now
   */
  async series(limiter: string, range: RangeName, of?: SingleKey): Promise<CountSeries> {
    const { service, store, now } = this.#options
    const { stepMs, steps } = RANGES[range]
    const end = Math.floor((now() - SETTLE_MS) / stepMs)
    const known = await store.read(limiter, RANGES[range], end - steps, steps)
    const seconds = known.map((_, i) => ((end - steps + i) * stepMs) / 1000)
    const base = { limiter, range, stepSeconds: stepMs / 1000, seconds }
    if (of === undefined) return { ...base, ...limiterSeries(known) }
    const word = storedWord(service, limiter, `${of.dimension ?? ''}=${of.key}`)
    const sinceMs = await this.watchList.sinceMs(limiter, word)
    const isWatched = (i: number) => sinceMs !== undefined && 1000 * seconds[i]! >= sinceMs
    return { ...base, ...of, ...keySeries(known, word, isWatched), isWatched: sinceMs !== undefined }
  }

  /** Stores the counts for the current minute, if the store responds. */
  async close(): Promise<void> {
    this.#stop()
    await this.#end(this.#minute)
    await this.#sending
    await this.#send()
  }

  async #end(minute: number): Promise<void> {
    const { usage } = this.#options
    const share = LIMITERS_WITH_ALL_KEYS / usage.names().length
    const perOrder = Math.max(1, Math.floor(KEYS_PER_ORDER * Math.min(1, share)))
    const limiters: Batch['limiters'][number][] = []
    for (const each of usage.takeMinute()) {
      limiters.push({ limiter: each.limiter, entries: this.#entriesOf(each, perOrder) })
      // Lets pending requests run before the next limiters.
      if (limiters.length % AT_A_TIME === 0) await setImmediate()
    }
    this.#pending.push({ process: this.#process, number: ++this.#lastNumber, minute, limiters })
    if (this.#pending.length <= MAX_PENDING) return
    this.#pending.shift()
    this.#options.log.warn('dropped a minute of the history, because storing it has failed for an hour')
  }

  #entriesOf({ limiter, counts, keys }: LimiterMinute, perOrder: number): Entries {
    const { allowed, denied, units, shadowDenied } = counts
    const all = Array.from(keys.values(), (each): [string, Counts] => [
      each.word,
      [each.allowed, each.denied, each.units, each.rank],
    ])
    // A watched key may also be in the sketch, under another name. Its exact counts come last, so they take precedence.
    const named = busiest(all, perOrder)
      .sort(([, a], [, b]) => a[3] - b[3])
      .map(([word, each]) => [storedWord(this.#options.service, limiter, word), each] as const)
    return Object.fromEntries([['', [allowed, denied, units, shadowDenied]], ...named])
  }

  /** Sends batches in order, one at a time. */
  #send(): Promise<void> {
    this.#sending ??= this.#sendAll().finally(() => {
      this.#sending = undefined
    })
    return this.#sending
  }

  async #sendAll(): Promise<void> {
    try {
      for (let batch = this.#pending[0]; batch !== undefined; batch = this.#pending[0]) {
        await this.#options.store.add(batch)
        if (this.#pending[0] === batch) this.#pending.shift()
      }
      this.#isFailing = false
    } catch (error) {
      this.#retryAtMs = performance.now() + RETRY_MS
      // Redis outages are logged elsewhere.
      if (this.#isFailing || error instanceof UnreachableError) return
      this.#isFailing = true
      this.#options.log.warn({ reason: messageOf(error) }, "can't write the history; will retry for an hour")
    }
  }

  #minuteNow(): number {
    return Math.floor(this.#options.now() / 60_000)
  }
}
