// The active limiters, and how reloads and shadow switches change them.

import type { AnyKey, Decision, Limiter, Logger, OnStoreError, Store, StoreUnavailableError } from 'slidegate'
import type { Config } from '../config/schema.ts'
import { DeclaredLimiter, type Shadowing } from './declared-limiter.ts'
import { emptyLogNotesOf } from './empty-logs.ts'
import { ServiceError } from './service-error.ts'
import { OwnStores } from './stores.ts'

export interface ActiveLimiter {
  readonly declared: DeclaredLimiter
  readonly limiter: Limiter<AnyKey>
  /** Reads keys for operators, with a longer timeout and a separate circuit breaker. */
  readonly reader: Limiter<AnyKey>
}

/** A limiter with any type of key. */
export type AnyLimiter = Pick<Limiter, 'name' | 'stats'>

export interface ServiceObserver {
  /** Called when a limiter is created. Several limiters may have the same name. */
  opened?(limiter: AnyLimiter): void
  closed?(limiter: AnyLimiter): void
  decided?(limiter: string, key: AnyKey, decision: Decision): void
  storeFailed?(limiter: string, error: StoreUnavailableError): void
  storeDown?(limiter: string, error: StoreUnavailableError): void
  storeUp?(limiter: string, downMs: number): void
  /** Limiters log store outages here. */
  readonly logger?: Logger
  /** Wraps each limiter. */
  around?<Key extends AnyKey>(limiter: Limiter<Key>): Limiter<Key>
}

/** Shadow switches set by operators, by limiter. */
export type ShadowSettings = Readonly<Record<string, Shadowing>>

/** The timeout for operators' reads. Operators would rather wait than see nothing. */
const READ_MS = 2000

/** How long a replaced limiter still serves its requests, in milliseconds. */
const RETIRING_MS = 60_000

/**
 * The limiters in a configuration, on one store.
 *
 * A reload replaces limiters whose declaration changed. A replaced limiter still serves its pending requests.
 */
export class Service {
  readonly store: Store
  readonly ownStores: OwnStores
  /** Whether the service is about to stop, and load balancers should skip it. */
  isDraining = false
  readonly #observer: ServiceObserver
  #config: Config
  #shadowSettings: ShadowSettings = {}
  #active: ReadonlyMap<string, ActiveLimiter> = new Map()
  readonly #retiring = new Map<Limiter<AnyKey>, NodeJS.Timeout>()
  readonly #onReplaced: ((former: ActiveLimiter) => void)[] = []

  /** @throws {SlidegateError} for invalid limiters */
  constructor(config: Config, store: Store, observer: ServiceObserver = {}) {
    this.store = store
    this.ownStores = new OwnStores(store, config.store?.memory)
    this.#config = config
    this.#observer = observer
    this.#activate(config, {})
  }

  get config(): Config {
    return this.#config
  }

  get shadowSettings(): ShadowSettings {
    return this.#shadowSettings
  }

  /** All limiters, in configuration order. */
  active(): readonly ActiveLimiter[] {
    return Array.from(this.#active.values())
  }

  /** The `onStoreError` of each limiter, and of Envoy's domains. */
  policies(): readonly OnStoreError[] {
    const { limiters, envoy } = this.#config
    return [...Object.values(limiters), ...(envoy === undefined ? [] : [envoy])].map(
      ({ onStoreError }) => onStoreError ?? 'throw',
    )
  }

  /** @throws {ServiceError} `unknown_limiter` */
  get(name: string): ActiveLimiter {
    const found = this.#active.get(name)
    if (found !== undefined) return found
    throw new ServiceError(404, 'unknown_limiter', `unknown limiter ${JSON.stringify(name)}`)
  }

  has(name: string): boolean {
    return this.#active.has(name)
  }

  /**
   * Applies a configuration completely or not at all. The store is kept.
   *
   * @throws {SlidegateError} for invalid limiters
   */
  reload(config: Config): void {
    this.#activate(config, this.#shadowSettings)
    this.#config = config
  }

  /** @throws {SlidegateError} if two limits become indistinguishable */
  shadow(shadowSettings: ShadowSettings): void {
    this.#activate(this.#config, shadowSettings)
    this.#shadowSettings = shadowSettings
  }

  /** Registers a listener that moves a replaced limiter's waiters to the new limiter. */
  onReplaced(listener: (former: ActiveLimiter) => void): void {
    this.#onReplaced.push(listener)
  }

  /** Stops timers, and rejects waiting requests. */
  close(): void {
    for (const [limiter, timer] of this.#retiring) {
      clearTimeout(timer)
      limiter.close()
    }
    for (const { limiter, reader } of this.#active.values()) {
      for (const each of new Set([limiter, reader])) each.close()
    }
  }

  #activate({ limiters }: Config, shadowSettings: ShadowSettings): void {
    const made: Limiter<AnyKey>[] = []
    const next = new Map<string, ActiveLimiter>()
    try {
      for (const [name, config] of Object.entries(limiters)) {
        const declared = new DeclaredLimiter(name, config, ownOf(shadowSettings, name))
        const present = this.#active.get(name)
        if (present?.declared.isSameAs(declared)) {
          next.set(name, present)
          continue
        }
        const limiter = this.#observed(declared.limiter(this.store, this.#observer.logger))
        made.push(limiter)
        next.set(name, { declared, limiter, reader: this.#readerOf(declared, limiter) })
      }
    } catch (error) {
      for (const limiter of made) this.#end(limiter)
      throw error
    }
    const present = this.#active
    this.#active = next
    for (const [name, { declared }] of next) {
      const before = present.get(name)?.declared
      if (before === declared) continue
      for (const note of emptyLogNotesOf(declared, before)) this.#observer.logger?.warn(note)
    }
    for (const [name, old] of present) {
      const now = next.get(name)
      if (now === old) continue
      for (const each of new Set([old.limiter, old.reader])) this.#retire(each)
      if (now?.declared.hasDimensions !== old.declared.hasDimensions) continue
      for (const notify of this.#onReplaced) notify(old)
    }
  }

  /**
   * Returns the limiter for operators' reads.
   *
   * Reads from a store in this process need no timeout, so they use `limiter` itself.
   */
  #readerOf(declared: DeclaredLimiter, limiter: Limiter<AnyKey>): Limiter<AnyKey> {
    if (this.store.applySync !== undefined) return limiter
    const reader = declared.limiter(this.store, false, READ_MS)
    return this.#observer.around?.(reader) ?? reader
  }

  /** Closes the limiter after some time, once it has no waiting requests. */
  #retire(limiter: Limiter<AnyKey>): void {
    const timer = setTimeout(() => {
      if (limiter.waiting().length > 0) return this.#retire(limiter)
      this.#retiring.delete(limiter)
      this.#end(limiter)
    }, RETIRING_MS).unref()
    this.#retiring.set(limiter, timer)
  }

  #end(limiter: Limiter<AnyKey>): void {
    limiter.close()
    this.#observer.closed?.(limiter)
  }

  #observed(made: Limiter<AnyKey>): Limiter<AnyKey> {
    const limiter = this.#observer.around?.(made) ?? made
    const { name } = limiter
    const { decided, storeFailed, storeDown, storeUp } = this.#observer
    this.#observer.opened?.(limiter)
    if (decided)
      limiter.on('decision', ({ key, decision }) => decided.call(this.#observer, name, key, decision))
    if (storeFailed) limiter.on('storeError', ({ error }) => storeFailed.call(this.#observer, name, error))
    if (storeDown) limiter.on('storeDown', ({ error }) => storeDown.call(this.#observer, name, error))
    if (storeUp) limiter.on('storeUp', ({ downMs }) => storeUp.call(this.#observer, name, downMs))
    return limiter
  }
}

/** Reads own properties only, because a limiter may be called `constructor`. */
function ownOf(shadowSettings: ShadowSettings, name: string): Shadowing | undefined {
  return Object.hasOwn(shadowSettings, name) ? shadowSettings[name] : undefined
}
