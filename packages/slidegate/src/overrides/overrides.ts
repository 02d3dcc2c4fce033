import { type Duration, parseWindow } from '../duration.ts'
import {
  asUnavailable,
  checkOptions,
  invalidOption,
  SlidegateError,
  StoreUnavailableError,
  show,
} from '../errors.ts'
import { plainSpelling, type Spelling } from '../key.ts'
import { checkCount } from '../limits/declare.ts'
import type { Limit, Noted, Notes, NotesAsked } from '../limits/limit.ts'
import { limitSet, withLog } from '../limits/limit-set.ts'
import { MAX_NOTES, notesLog } from '../limits/notes.ts'
import type { NoteOp, NotesOp, Op, Outcome, Part } from '../stores/store.ts'
import { KnownOverrides } from './known-overrides.ts'
import { limitsText, textOf } from './override-note.ts'
import { MAX_PAGES, type Reading, reading } from './reading.ts'

/** How soon other processes know of an override. */
export interface OverridesOptions {
  /**
   * Milliseconds, an integer from 10 to 2^31 - 1, after which an override that another process has set or deleted is in
   * force in this one at the latest. Twice in that time the store is asked, while there are requests; the first one after a
   * while waits for that: for one call, or for one of some 250 overrides each where all have to be read. On a store in this
   * process all is in force at once. Default: 1000.
   */
  readonly maxStaleMs?: number
}

/** For how long an override is in force. */
export interface OverrideOptions {
  /** After which the declared limits are in force again, from 10 ms to 366 days. Default: never. */
  readonly ttl?: Duration | undefined
}

/** Limits that are in force for a key in place of the declared ones. */
export interface Override {
  /** As it was given; with `hashKeys` as it is stored. */
  readonly key: string
  /** Where the limiter has dimensions: that of the key. */
  readonly dimension?: string
  readonly limits: readonly Limit[]
  /** Milliseconds until the declared limits are in force again; 0 for never. */
  readonly expiresInMs: number
}

/**
 * Other limits for single keys, without a restart: kept in the store, and so in force in every process that has a limiter
 * of this name there.
 *
 * An override that differs from the declared limits only in numbers (see `limits` of `createLimiter`) counts what the key
 * has used so far. One of another kind or precision begins with an empty log. When a promise resolves, the change is in
 * force in this process; elsewhere within `maxStaleMs`.
 *
 * All reject with a `StoreUnavailableError` where the store gave no answer; whether what was to be written has been is then
 * unknown.
 */
export interface Overrides<Key> {
  /**
   * At most 10,000 keys of a limiter have one: above that a `StoreUnavailableError` of reason `full`. An override takes
   * at most 8,192 characters as JSON, its key included: above that `invalid_limit`.
   *
   * @throws {SlidegateError} `invalid_limit`, `duplicate_limit`, `invalid_window` (for `ttl`), `invalid_key`
   */
  set(key: Key, limits: readonly Limit[], options?: OverrideOptions): Promise<void>
  /** What is in force for the key; undefined: the declared limits are. */
  get(key: Key): Promise<Override | undefined>
  /** Answers whether there was one. */
  delete(key: Key): Promise<boolean>
  /** All that are in force. */
  list(): Promise<readonly Override[]>
}

export interface OverrideTableOptions {
  /** The limiter's name. */
  readonly limiter: string
  /** How keys are stored. Default: as they are. */
  readonly spelling?: Spelling
  readonly maxStaleMs?: number | undefined
  /** Has a deadline of its own. */
  readonly apply: (op: Op) => Promise<Outcome>
  /** Where the state is in this process: it is then asked each time. */
  readonly applySync?: ((op: Op) => Outcome) | undefined
  /** Is told, once for each read, that some of it is damaged: the other overrides are in force. */
  readonly damaged?: ((error: StoreUnavailableError) => void) | undefined
  /** A monotonic clock of this process, in milliseconds. */
  readonly now?: (() => number) | undefined
}

/** What is asked for in place of what is in force; without limits the declared ones. */
interface Asked {
  readonly dimension: string | undefined
  readonly key: string
  readonly limits: readonly Limit[] | undefined
  readonly ttlMs: number
}

/** So often a change is begun anew when others write the same override. */
const MAX_TRIES = 8

/** The stored key of the table: no caller's key is ever stored like that. */
const TABLE_KEY = '~overrides'

/**
 * The overrides of a limiter. There is no timer: requests see to it that they are read again, ahead of time where there
 * are many. A store that fails changes nothing: what is known stands.
 */
export class OverrideTable {
  readonly #limiter: string
  readonly #spelling: Spelling
  readonly #maxStaleMs: number
  readonly #apply: (op: Op) => Promise<Outcome>
  readonly #applySync: ((op: Op) => Outcome) | undefined
  readonly #damaged: ((error: StoreUnavailableError) => void) | undefined
  readonly #now: () => number
  readonly #parts: readonly [Part]
  readonly #known: KnownOverrides
  #reading: Promise<void> | undefined
  /** When the last read began that has succeeded, and when one has failed. */
  #readAtMs = Number.NEGATIVE_INFINITY
  #failedAtMs = Number.NEGATIVE_INFINITY

  /** @throws {SlidegateError} `invalid_option` */
  constructor(options: OverrideTableOptions) {
    const { limiter, maxStaleMs = 1000, apply, applySync, damaged, now } = options
    if (!Number.isInteger(maxStaleMs) || maxStaleMs < 10 || maxStaleMs > 2 ** 31 - 1) {
      throw invalidOption(
        `maxStaleMs is ${show(maxStaleMs)}; it must be an integer from 10 to 2^31 - 1`,
        maxStaleMs,
      )
    }
    this.#limiter = limiter
    this.#spelling = options.spelling ?? plainSpelling
    this.#maxStaleMs = maxStaleMs
    this.#apply = apply
    this.#applySync = applySync
    this.#damaged = damaged
    this.#now = now ?? (() => performance.now())
    this.#known = new KnownOverrides(this.#now)
    this.#parts = [{ key: TABLE_KEY, set: withLog(limitSet(limiter, []), notesLog) }]
  }

  /** Whether what is known is fresh enough to decide by; starts to read anew when it gets old. */
  isFresh(): boolean {
    if (this.#applySync !== undefined) {
      this.refreshSync()
      return true
    }
    const nowMs = this.#now()
    if (this.#isDue(nowMs)) this.#read()
    // After a failure nobody waits: it is tried again in the background.
    return this.#lastTriedMs(nowMs) <= this.#maxStaleMs
  }

  /** Resolves when it has been read anew, or that has failed: what was known last then stands. */
  async refresh(): Promise<void> {
    if (this.#applySync !== undefined) this.refreshSync()
    else if (this.#reading !== undefined || this.#isDue(this.#now())) await this.#read().catch(() => {})
  }

  /** The same at once, on a store in this process; on any other it does nothing. */
  refreshSync(): void {
    try {
      this.#readSync()
    } catch {
      // What is known stands.
    }
  }

  /** @param key as stored */
  of(dimension: string | undefined, key: string): readonly Limit[] | undefined {
    return this.#known.isEmpty ? undefined : this.#known.of(nameOf(dimension, key))
  }

  async set(
    dimension: string | undefined,
    key: string,
    limits: readonly Limit[],
    options: OverrideOptions = {},
  ): Promise<void> {
    const name = nameOf(dimension, this.#spelling.key(key))
    checkOptions(options, 'set', { ttl: true })
    if (!Array.isArray(limits) || limits.length === 0) {
      throw new SlidegateError(
        'invalid_limit',
        `the limits are ${Array.isArray(limits) ? 'none' : show(limits)}; they must be an array of one or more`,
        limits,
      )
    }
    checkCount(limits, 'the override')
    // Both throw where a limit is wrong.
    limitsText(limits)
    limitSet(dimension === undefined ? this.#limiter : `${this.#limiter}/${dimension}`, limits)
    const ttlMs = options.ttl === undefined ? 0 : parseWindow(options.ttl, 'the ttl')
    await this.#write(name, { dimension, key, limits, ttlMs })
  }

  async get(dimension: string | undefined, key: string): Promise<Override | undefined> {
    const name = nameOf(dimension, this.#spelling.key(key))
    await this.#readAnew()
    return this.#known.overrideOf(name)
  }

  async delete(dimension: string | undefined, key: string): Promise<boolean> {
    const name = nameOf(dimension, this.#spelling.key(key))
    return this.#write(name, { dimension, key, limits: undefined, ttlMs: 0 })
  }

  async list(): Promise<readonly Override[]> {
    await this.#readAnew()
    return this.#known.all()
  }

  /**
   * Without limits the declared ones are in force again. Returns whether there was an override, so a write that meets
   * another process's write starts again.
   */
  async #write(name: string, asked: Asked): Promise<boolean> {
    for (let tries = 1; tries <= MAX_TRIES; tries++) {
      await this.#readAnew()
      // In this process nobody comes between the read and the write.
      this.#readSync()
      const wasThere = this.#known.overrideOf(name) !== undefined
      // What cannot be read is to be deleted all the same; without a table there is nothing.
      if (!wasThere && asked.limits === undefined && this.#known.version === 0) return false
      const op = this.#noteOp(name, asked)
      const { noted, isStale = false } = await this.#note(op)
      if (isStale) continue
      if (!noted) {
        throw new StoreUnavailableError(
          'full',
          `no override for ${show(asked.key)}: the limiter ${show(this.#limiter)} has ${MAX_NOTES} already`,
        )
      }
      try {
        await this.#readAnew()
      } catch {
        // It was written all the same.
        this.#known.keep(name, op.text)
      }
      return wasThere
    }
    throw new StoreUnavailableError(
      'error',
      `the override of ${show(asked.key)} was written by others ${MAX_TRIES} times meanwhile; try again`,
    )
  }

  #noteOp(name: string, { dimension, key, limits, ttlMs }: Asked): NoteOp {
    const stored = this.#spelling.isSecret ? this.#spelling.key(key) : key
    const text = limits && textOf({ dimension, key: stored, limits: limitsText(limits), ttlMs })
    return { type: 'note', parts: this.#parts, name, text, ttlMs, since: this.#known.version }
  }

  /** In a table that is full, notes that have expired are looked for bit by bit. */
  async #note(op: NoteOp): Promise<Noted> {
    let noted = (await (this.#applySync ?? this.#apply)(op)) as Noted
    for (let pages = 1; !noted.noted && noted.next !== undefined && pages < MAX_PAGES; pages++) {
      noted = (await this.#apply({ ...op, from: noted.next })) as Noted
    }
    return noted
  }

  /** Whether it is time to read again; after a failure as long has to pass. */
  #isDue(nowMs: number): boolean {
    return this.#lastTriedMs(nowMs) >= this.#maxStaleMs / 2
  }

  /** How long ago it was read, or that has failed. */
  #lastTriedMs(nowMs: number): number {
    return nowMs - Math.max(this.#readAtMs, this.#failedAtMs)
  }

  /** The read that is on its way, or a new one; there are never two. */
  #read(): Promise<void> {
    if (this.#reading !== undefined) return this.#reading
    const reading = this.#readOnce().finally(() => {
      this.#reading = undefined
    })
    this.#reading = reading
    // Whoever waits for it is told; perhaps nobody does.
    reading.catch(() => {})
    return reading
  }

  async #readOnce(): Promise<void> {
    const startedAtMs = this.#now()
    try {
      const pages = reading(this.#known)
      let page = pages.next()
      while (!page.done) page = this.#after(pages, (await this.#apply(this.#readOp(page.value))) as Notes)
      this.#readAtMs = startedAtMs
      this.#tell(page.value)
    } catch (error) {
      this.#failedAtMs = this.#now()
      throw error
    }
  }

  #readSync(): void {
    if (this.#applySync === undefined) return
    const pages = reading(this.#known)
    let page = pages.next()
    while (!page.done) page = this.#after(pages, this.#applySync(this.#readOp(page.value)) as Notes)
    this.#tell(page.value)
  }

  /** What to ask for next; that a call fails is told by whoever makes it. */
  #after(pages: Reading, page: Notes): ReturnType<Reading['next']> {
    try {
      return pages.next(page)
    } catch (error) {
      this.#damaged?.(asUnavailable(error))
      throw error
    }
  }

  #tell(damaged: readonly string[]): void {
    if (damaged.length === 0) return
    const others = damaged.length > 1 ? `, and ${damaged.length - 1} more` : ''
    this.#damaged?.(
      new StoreUnavailableError('state', `the override of ${show(damaged[0])} cannot be read${others}`),
    )
  }

  /** By a read that begins now: one that is on its way may have missed what has just been written. */
  async #readAnew(): Promise<void> {
    if (this.#applySync !== undefined) {
      this.#readSync()
      return
    }
    while (this.#reading !== undefined) await this.#reading.catch(() => {})
    await this.#read()
  }

  #readOp(asked: NotesAsked): NotesOp {
    return { type: 'notes', parts: this.#parts, ...asked }
  }
}

function nameOf(dimension: string | undefined, key: string): string {
  return dimension === undefined ? key : `${dimension}/${key}`
}

/**
 * The overrides of a limiter, as its users see them: those of a key.
 *
 * @param oneOf the key of one dimension; throws where it is none
 * @param changed is told of a key that is held to other limits from now on
 */
export function overridesOf<Key>(
  table: OverrideTable,
  oneOf: (key: Key) => { readonly dimension: string | undefined; readonly given: string },
  changed: (key: Key) => void,
): Omit<Overrides<Key>, 'list'> {
  return {
    set: async (key, limits, options) => {
      const { dimension, given } = oneOf(key)
      await table.set(dimension, given, limits, options)
      changed(key)
    },
    get: async (key) => {
      const { dimension, given } = oneOf(key)
      return table.get(dimension, given)
    },
    delete: async (key) => {
      const { dimension, given } = oneOf(key)
      const isDeleted = await table.delete(dimension, given)
      changed(key)
      return isDeleted
    },
  }
}
