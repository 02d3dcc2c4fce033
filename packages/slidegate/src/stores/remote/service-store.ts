// A slidegate service as a store.

import { checkOptions, invalidOption, SlidegateError, show } from '../../errors.ts'
import { failurePolicy } from '../../resilience/failure-policy.ts'
import { whenIdle } from '../idle.ts'
import { type BatchedStore, type BatchOptions, batchedStore } from '../redis/batcher.ts'
import { Start } from '../start.ts'
import type { Call, FailurePolicy, Op, Store, StoreConnection } from '../store.ts'
import { MAX_OPS } from './bodies.ts'
import { type Address, type Fetch, HttpTransport, serviceAt } from './http-transport.ts'

/** Options of {@link serviceStore}. */
export interface ServiceStoreOptions {
  /**
   * The caller's token. Required unless the service allows anonymous callers.
   *
   * A function is called for each request to the service, so the token can change.
   */
  readonly token?: string | (() => string | Promise<string>)
  /** A `fetch` for custom certificates or tests. Default: the runtime's `fetch`. */
  readonly fetch?: Fetch
}

/** Ops that arrive while calls are in flight are sent together. */
const BATCHES: BatchOptions = {
  maxCalls: 4,
  readsFirst: true,
  size: { ops: MAX_OPS, requests: 8 * MAX_OPS },
}

/**
 * Stores state in a slidegate service.
 *
 * For programs that can't or shouldn't connect to the service's Redis. Limits are declared in the program. The service's
 * configuration sets which limiter names a token may use, with `ownLimiters`. Time is read from the clock of the service's store.
 * Concurrent requests are sent together.
 *
 * @param url the service's URL, such as `https://limits.example.com`
 * @throws {SlidegateError} `invalid_option`
 */
export function serviceStore(url: string | URL, options: ServiceStoreOptions = {}): Store {
  checkOptions(options, 'serviceStore', { token: true, fetch: true })
  const address = { url: urlOf(url), fetch: fetchIn(options), token: tokenIn(options) }
  return new ServiceStore(address)
}

interface Begun {
  /** The first connection. */
  readonly start: Start
  readonly batched: BatchedStore
}

class ServiceStore implements Store {
  readonly failurePolicy: FailurePolicy = failurePolicy
  readonly connection: StoreConnection
  readonly #address: Address
  readonly #underWay = new Set<AbortController>()
  #begun: Begun | undefined
  #isClosed = false

  constructor(address: Address) {
    this.#address = address
    this.connection = {
      // The first request loads the runtime's `fetch` and connects.
      whenStarted: () => this.#begin().start.whenOver,
      diagnose: () => ({ message: `${serviceAt(address)} did not answer` }),
    }
  }

  apply(ops: readonly Op[], call: Call): void {
    if (this.#isClosed) call.reject(new SlidegateError('closed', 'the store is closed'))
    else this.#begin().batched.apply(ops, call)
  }

  isOverloaded(op: Op, sinceMs: number): boolean {
    return this.#begin().batched.isOverloaded(op, sinceMs)
  }

  async close(): Promise<void> {
    this.#isClosed = true
    await whenIdle(() => this.#begun?.batched.isIdle() ?? true)
    for (const ending of this.#underWay) ending.abort()
  }

  /** Starts on the first request, because some runtimes don't allow random numbers earlier. */
  #begin(): Begun {
    if (this.#begun === undefined) {
      const start = new Start()
      const transport = new HttpTransport(this.#address, this.#underWay, start)
      this.#begun = { start, batched: batchedStore([transport], BATCHES, () => 0) }
    }
    return this.#begun
  }
}

function urlOf(given: unknown): string {
  const url = URL.canParse(`${given}`) ? new URL(`${given}`) : undefined
  if (url === undefined || !/^https?:$/.test(url.protocol) || url.search !== '' || url.hash !== '') {
    throw invalidOption(
      `the URL is ${show(`${given}`)}; it must be a URL like https://limits.example.com`,
      given,
    )
  }
  if (url.username !== '' || url.password !== '') {
    // The error must not contain the URL.
    throw invalidOption('the URL has a user name or password; use the token option instead')
  }
  return `${url.href.replace(/\/+$/, '')}/v1/store`
}

function fetchIn({ fetch }: ServiceStoreOptions): Fetch {
  if (fetch === undefined) return (url, init) => globalThis.fetch(url, init)
  if (typeof fetch === 'function') return fetch
  throw invalidOption(`fetch is ${show(fetch)}; it must be a function`, fetch)
}

/** Rejects an undefined token, such as that of a missing environment variable. */
function tokenIn(options: ServiceStoreOptions): Address['token'] {
  if (!('token' in options)) return () => undefined
  const { token } = options
  if (typeof token === 'function') return async () => checkedToken(await token())
  const checked = checkedToken(token)
  return () => checked
}

/** Errors of `fetch` would contain the whole token. */
function checkedToken(token: unknown): string {
  if (typeof token === 'string' && /^[\x21-\x7e]+$/.test(token)) return token
  throw invalidOption(`the token is of type ${typeof token}; it must be a string of printable characters`)
}
