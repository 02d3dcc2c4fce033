// A slidegate service as a store: slidegate/client.

import { checkOptions, checkThat, invalidOption, SlidegateError } from '../../errors.ts'
import { failurePolicy } from '../../resilience/failure-policy.ts'
import { type BatchedStore, type BatchOptions, batchedStore } from '../redis/batcher.ts'
import { Start } from '../start.ts'
import type { Store } from '../store.ts'
import { MAX_OPS } from './bodies.ts'
import { type Address, type Fetch, httpTransport } from './http-transport.ts'

export type { StoreResponse } from './bodies.ts'
export type { Fetch } from './http-transport.ts'
export { type ServedStore, type ServeStoreOptions, serveStore } from './serve-store.ts'
export type { Authorize } from './sets.ts'

/** Options of {@link serviceStore}. */
export interface ServiceStoreOptions {
  /** The caller's token, required unless the service allows anonymous callers. A function can return a new token per request. */
  readonly token?: string | (() => string | Promise<string>)
  /** A `fetch` for custom certificates or tests. Default: the runtime's `fetch`. */
  readonly fetch?: Fetch
}

const BATCHES: BatchOptions = {
  maxCalls: 4,
  readsFirst: true,
  size: { ops: MAX_OPS, requests: 8 * MAX_OPS },
}

/**
 * Stores state in a slidegate service.
 *
 * Use it in programs that can't or shouldn't connect to the service's Redis. You declare limits in the program. In the
 * service's configuration, `ownLimiters` lists the limiter names that a token may use. Time is read from the clock of
 * the service's store. Concurrent requests are sent together.
 *
 * @param url the service's URL, such as `https://limits.example.com`
 * @throws {SlidegateError} `invalid_option`
 */
export function serviceStore(url: string | URL, options: ServiceStoreOptions = {}): Store {
  checkOptions(options, 'serviceStore', { token: true, fetch: true })
  const base = baseOf(url)
  const service = `the service at ${base}`
  const address = { service, url: `${base}/v1/store`, fetch: fetchIn(options), token: tokenIn(options) }
  const underWay = new Set<AbortController>()
  let isClosed = false
  let begun: { readonly start: Start; readonly batched: BatchedStore } | undefined
  // Created by the first request, because some runtimes don't allow random numbers before that.
  const current = () => {
    if (begun !== undefined) return begun
    const start = new Start()
    begun = { start, batched: batchedStore([httpTransport(address, underWay, start)], BATCHES, () => 0) }
    return begun
  }
  return {
    failurePolicy,
    connection: {
      // The first request loads the runtime's `fetch` and connects.
      whenStarted: () => current().start.whenOver,
      diagnose: () => ({ message: `${service} did not answer` }),
    },
    apply(ops, call) {
      if (isClosed) call.reject(new SlidegateError('closed', 'the store is closed'))
      else current().batched.apply(ops, call)
    },
    isOverloaded: (op, sinceMs) => current().batched.isOverloaded(op, sinceMs),
    async close() {
      isClosed = true
      await begun?.batched.whenIdle()
      for (const ending of underWay) ending.abort()
    },
  }
}

function baseOf(given: unknown): string {
  const url = URL.canParse(`${given}`) ? new URL(`${given}`) : undefined
  const isRight = url !== undefined && /^https?:$/.test(url.protocol) && url.search === '' && url.hash === ''
  const shown = given instanceof URL ? given.href : given
  checkThat(isRight, 'the URL', shown, 'a URL like https://limits.example.com')
  if (url.username !== '' || url.password !== '') {
    // The error must not contain the URL.
    throw invalidOption('the URL has a user name or password; use the token option instead')
  }
  return url.href.replace(/\/+$/, '')
}

function fetchIn({ fetch }: ServiceStoreOptions): Fetch {
  if (fetch === undefined) return (url, init) => globalThis.fetch(url, init)
  checkThat(typeof fetch === 'function', 'fetch', fetch, 'a function')
  return fetch
}

/** Rejects an undefined token, which may come from a missing environment variable. */
function tokenIn(options: ServiceStoreOptions): Address['token'] {
  if (!('token' in options)) return () => undefined
  const { token } = options
  if (typeof token === 'function') return async () => checkedToken(await token())
  const checked = checkedToken(token)
  return () => checked
}

/** Rejects an invalid token here, because an error from `fetch` would contain it. */
function checkedToken(token: unknown): string {
  if (typeof token === 'string' && /^[\x21-\x7e]+$/.test(token)) return token
  throw invalidOption(`the token is of type ${typeof token}; it must be a string of printable characters`)
}
