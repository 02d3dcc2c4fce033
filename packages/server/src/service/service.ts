// The limiters in force; reloads, shadow switches.

import type { AnyKey, Decision, Limiter, Logger, OnStoreError, Store, StoreUnavailableError } from 'slidegate'
import type { Config } from '../config/schema.ts'
import { DeclaredLimiter, type Shadowing } from './declared-limiter.ts'
import { emptyLogNotesOf } from './empty-logs.ts'
import { ServiceError } from './service-error.ts'
import { OwnStores } from './stores.ts'

/** A limiter in force. */
export interface ActiveLimiter {
  readonly declared: DeclaredLimiter
  readonly limiter: Limiter<AnyKey>
}

/** A limiter, whatever its keys are. */
export type AnyLimiter = Pick<Limiter, 'name' | 'stats'>

/** Those who are told of what the service does. */
export interface ServiceObserver {
  /** Another limiter is in use; of one name there may be several. */
  opened?(limiter: AnyLimiter): void
  /** It is in use no more. */
  closed?(limiter: AnyLimiter): void
  decided?(limiter: string, key: AnyKey, decision: Decision): void
  storeFailed?(limiter: string, error: StoreUnavailableError): void
  storeDown?(limiter: string, error: StoreUnavailableError): void
  storeUp?(limiter: string, downMs: number): void
  /** Where limiters log that the store goes down or comes back. */
  readonly logger?: Logger
  /** Each limiter, with something around it. */
  around?<Key extends AnyKey>(limiter: Limiter<Key>): Limiter<Key>
}

/** Shadow limits by an operator's word, by limiter. */
export type Shadowings = Readonly<Record<string, Shadowing>>

/** Milliseconds for which a replaced limiter still answers its requests. */
const RETIRING_MS = 60_000

/**
 * The limiters of a configuration, on one store. Those that a new configuration leaves as they are go on. Others are made
 * anew, and whoever asked the old ones still gets an answer.
 */
export class Service {
  readonly store: Store
  readonly ownStores: OwnStores
  /** Whether no more requests should be sent here, for it is about to end. */
  isDraining = false
  readonly #observer: ServiceObserver
  #config: Config
  #shadowings: Shadowings = {}
  #active: ReadonlyMap<string, ActiveLimiter> = new Map()
  readonly #retiring = new Map<Limiter<AnyKey>, NodeJS.Timeout>()
  readonly #onReplaced: ((former: ActiveLimiter) => void)[] = []

  /** @throws {SlidegateError} for limiters that cannot be */
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

  get shadowings(): Shadowings {
    return this.#shadowings
  }

  /** All, in the order of the configuration. */
  active(): readonly ActiveLimiter[] {
    return Array.from(this.#active.values())
  }

  /** What requests are told while the store gives no answer: of each limiter, and of Envoy's domains. */
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
    throw new ServiceError(404, 'unknown_limiter', `there is no limiter ${JSON.stringify(name)}`)
  }

  has(name: string): boolean {
    return this.#active.has(name)
  }

  /**
   * Puts a configuration in force, all of it or nothing. The store stays.
   *
   * @throws {SlidegateError} for limiters that cannot be
   */
  reload(config: Config): void {
    this.#activate(config, this.#shadowings)
    this.#config = config
  }

  /** @throws {SlidegateError} where two limits cannot be told apart any more */
  shadow(shadowings: Shadowings): void {
    this.#activate(this.#config, shadowings)
    this.#shadowings = shadowings
  }

  /** Calls back with each replaced limiter. Its waiters should move to the new one. */
  onReplaced(listener: (former: ActiveLimiter) => void): void {
    this.#onReplaced.push(listener)
  }

  /** Ends timers. Waiting requests are rejected. */
  close(): void {
    for (const [limiter, timer] of this.#retiring) {
      clearTimeout(timer)
      limiter.close()
    }
    for (const { limiter } of this.#active.values()) limiter.close()
  }

  #activate({ limiters }: Config, shadowings: Shadowings): void {
    const made: Limiter<AnyKey>[] = []
    const next = new Map<string, ActiveLimiter>()
    try {
      for (const [name, config] of Object.entries(limiters)) {
        const declared = new DeclaredLimiter(name, config, ownOf(shadowings, name))
        const present = this.#active.get(name)
        if (present?.declared.isSameAs(declared)) {
          next.set(name, present)
          continue
        }
        const limiter = this.#observed(declared.limiter(this.store, this.#observer.logger))
        made.push(limiter)
        next.set(name, { declared, limiter })
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
      this.#retire(old.limiter)
      if (now?.declared.hasDimensions !== old.declared.hasDimensions) continue
      for (const tell of this.#onReplaced) tell(old)
    }
  }

  /** It still answers its requests and wakes its waiters. */
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

/** Names are others' choice: one may be called like something that all objects have. */
function ownOf(shadowings: Shadowings, name: string): Shadowing | undefined {
  return Object.hasOwn(shadowings, name) ? shadowings[name] : undefined
}
