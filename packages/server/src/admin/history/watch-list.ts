// The keys that operators watch, and how keys are named in the history.

import type { Logger } from 'pino'
import { messageOf } from '../../../../replay/src/errors.ts'
import type { Service } from '../../service/service.ts'
import { concealing, type SingleKey } from '../keys.ts'
import { partsOf } from '../merge-keys.ts'
import type { Usage } from '../usage.ts'
import type { HistoryStore, Watched } from './history-store.ts'
import { RANGES } from './records.ts'
import { MAX_WATCHED, storedKey, type WatchedOfLimiter } from './watched-keys.ts'

/** How long a key is watched: as long as its history is kept. */
const WATCH_MS = RANGES['7d'].steps * RANGES['7d'].stepMs

interface WatchListOptions {
  readonly service: Service
  readonly usage: Usage
  readonly store: HistoryStore
  readonly log: Logger
  /** The wall clock, in epoch milliseconds. */
  readonly now: () => number
}

/** The watched keys of all limiters, shared by all instances on the same store. */
export class WatchList {
  readonly #options: WatchListOptions

  constructor(options: WatchListOptions) {
    this.#options = options
  }

  /**
   * Watches a key for a week, or stops watching it. If the limiter has too many watched keys, drops the key whose watch
   * ends first.
   *
   * @throws {ServiceError} if it can't be stored now
   */
  async watch(limiter: string, of: SingleKey, isWatched: boolean): Promise<void> {
    const { store } = this.#options
    const key = this.#watchedOf(limiter, of)
    const others = await this.#othersOf(key)
    const [first] = others.sort((a, b) => a.untilMs - b.untilMs)
    if (isWatched && others.length >= MAX_WATCHED) await store.watch(first!, false)
    await store.watch(key, isWatched)
    await this.apply()
  }

  /** Adds keys to the list until the limiter has the maximum number of watched keys. Never rejects. */
  async watchIfRoom(limiter: string, keys: readonly SingleKey[]): Promise<void> {
    try {
      for (const of of keys) {
        const key = this.#watchedOf(limiter, of)
        const others = await this.#othersOf(key)
        if (others.length < MAX_WATCHED) await this.#options.store.watch(key, true)
      }
      await this.apply()
    } catch (error) {
      this.#options.log.warn({ reason: messageOf(error) }, "can't watch a key")
    }
  }

  /**
   * Returns when operators began to watch a key, in epoch milliseconds.
   *
   * @throws {ServiceError} if it can't be read now
   */
  async sinceMs(limiter: string, word: string): Promise<number | undefined> {
    const watched = await this.#options.store.watched()
    const found = watched.find((each) => each.limiter === limiter && each.word === word)
    return found && found.untilMs - WATCH_MS
  }

  /** Makes this process count the watched keys. If the list can't be read, the last known one stays in use. */
  async apply(): Promise<void> {
    const { store, service, usage } = this.#options
    const watched = await store.watched().catch(() => undefined)
    if (watched === undefined) return
    const byLimiter = new Map<string, WatchedOfLimiter>()
    for (const { limiter, word } of watched) {
      const known = byLimiter.get(limiter) ?? { keys: [], conceal: concealing(service, limiter) }
      byLimiter.set(limiter, { ...known, keys: [...known.keys, partsOf(word)] })
    }
    usage.watch(byLimiter)
  }

  #watchedOf(limiter: string, { key, dimension = '' }: SingleKey): Watched {
    const { service, now } = this.#options
    const word = storedWord(service, limiter, `${dimension}=${key}`)
    return { limiter, word, untilMs: now() + WATCH_MS }
  }

  /** The other watched keys of the same limiter. */
  async #othersOf({ limiter, word }: Watched): Promise<Watched[]> {
    const watched = await this.#options.store.watched()
    return watched.filter((each) => each.limiter === limiter && each.word !== word)
  }
}

/**
 * Returns a word (dimension, `=` and key) in its stored form.
 *
 * Long keys are truncated. If the limiter has `hashKeys`, keys are hashed.
 *
 * @param word dimension, `=` and key
 */
export function storedWord(service: Service, limiter: string, word: string): string {
  const [dimension, key] = partsOf(word)
  return `${dimension}=${storedKey(key, concealing(service, limiter))}`
}
