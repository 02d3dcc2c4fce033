// A slidegate service as a store.

import { checkOptions, invalidOption, SlidegateError, show } from '../../errors.ts'
import { whenIdle } from '../idle.ts'
import { type BatchedStore, type BatchOptions, batchedStore } from '../redis/batcher.ts'
import { Start } from '../start.ts'
import type { Call, Op, Store, StoreConnection } from '../store.ts'
import { MAX_OPS } from './bodies.ts'
import { type Address, type Fetch, HttpTransport, serviceAt } from './http-transport.ts'

/** Who asks the service, and how. */
export interface ServiceStoreOptions {
  /**
   * What the service knows the caller by; needed unless it lets anybody in. A function is asked for each call, so that a
   * token can be replaced while all runs.
   */
  readonly token?: string | (() => string | Promise<string>)
  /** How the service is asked, for certificates of one's own, and tests. Default: the runtime's `fetch`. */
  readonly fetch?: Fetch
}

/** One call at a time: what is asked meanwhile travels with the next. */
const BATCHES: BatchOptions = {
  maxCalls: 4,
  readsFirst: true,
  size: { ops: MAX_OPS, requests: 8 * MAX_OPS },
}

/**
 * State in a slidegate service, shared by all who use it: for programs that cannot reach the Redis of that service, or
 * should not. What the limits are is said here; the service has to be told which names a token may say them of, by
 * `ownLimits`. The clock of the service's store counts. Requests that wait at the same time travel together.
 *
 * @param url of the service: `https://limits.example.com`
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
  readonly connection: StoreConnection
  readonly #address: Address
  readonly #underWay = new Set<AbortController>()
  #begun: Begun | undefined
  #isClosed = false

  constructor(address: Address) {
    this.#address = address
    this.connection = {
      // The first request loads the runtime's `fetch`, and connects.
      whenStarted: () => this.#begin().start.whenOver,
      silence: () => ({ message: `${serviceAt(address)} did not answer` }),
    }
  }

  apply(ops: readonly Op[], call: Call): void {
    if (this.#isClosed) call.reject(new SlidegateError('closed', 'the store is closed'))
    else this.#begin().batched.apply(ops, call)
  }

  isCrowded(op: Op, sinceMs: number): boolean {
    return this.#begin().batched.isCrowded(op, sinceMs)
  }

  async close(): Promise<void> {
    this.#isClosed = true
    await whenIdle(() => this.#begun?.batched.isIdle() ?? true)
    for (const ending of this.#underWay) ending.abort()
  }

  /** With the first request: there are runtimes in which nothing may be drawn before. */
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
    throw invalidOption(`the URL is ${show(`${given}`)}; it must be like https://limits.example.com`, given)
  }
  if (url.username !== '' || url.password !== '') {
    // It is no business of whoever reads the error.
    throw invalidOption('the URL has a name or a password; use the token option')
  }
  return `${url.href.replace(/\/+$/, '')}/v1/store`
}

function fetchIn({ fetch }: ServiceStoreOptions): Fetch {
  if (fetch === undefined) return (url, init) => globalThis.fetch(url, init)
  if (typeof fetch === 'function') return fetch
  throw invalidOption(`fetch is ${show(fetch)}; it must be a function`, fetch)
}

/** A token that is named but undefined, such as a variable of the environment that is not set, must not go unnoticed. */
function tokenIn(options: ServiceStoreOptions): Address['token'] {
  if (!('token' in options)) return () => undefined
  const { token } = options
  if (typeof token === 'function') return async () => checkedToken(await token())
  const checked = checkedToken(token)
  return () => checked
}

/** What `fetch` says of others has the whole token in it. */
function checkedToken(token: unknown): string {
  if (typeof token === 'string' && /^[\x21-\x7e]+$/.test(token)) return token
  throw invalidOption(`the token is of type ${typeof token}; it must be a text of printable characters`)
}
