import { setTimeout as delay } from 'node:timers/promises'
import { parseList } from 'structured-headers'
import { onTestFinished } from 'vitest'
import type { GuardOptions, HandlerArguments } from '../../../src/http/index.ts'
import { type Limit, memoryStore, type Store, slidingWindow } from '../../../src/index.ts'

/** The parts of an adapter that the shared tests need. */
export interface AdapterUnderTest<Args extends HandlerArguments> {
  /**
   * Starts a server on loopback.
   *
   * Every request passes a `rateLimit` for each of the options, in order. Then it gets `served` with the status in its `x-status`
   * header (default 200), and its own `x-used` header. Errors are recorded and get a 500. With `behindProxy`, the framework
   * trusts proxies on loopback only.
   */
  serve(options: readonly GuardOptions<Args>[], settings?: { behindProxy?: boolean }): Promise<Server>
  /** Returns a request header, as a `key`, `cost` or `skip` function would read it. */
  header(request: Args[0], name: string): string | undefined
  /** Whether connections can be closed without a response. Default: `true`. */
  readonly drops?: boolean
  /** Whether calls of the guard may share a request on purpose. Default: `false`. */
  readonly sharesRequests?: boolean
  /** An `onDenied` that responds with 418 and `cost <the decision's cost>`. */
  readonly teapot: NonNullable<GuardOptions<Args>['onDenied']>
}

export interface Server {
  readonly url: string
  /** The number of requests that the handler served. */
  served(): number
  /** The errors that the framework's error handler received. */
  readonly errors: readonly unknown[]
  close(): Promise<void>
}

export const START_MS = 1_700_000_000_000

/** The time of all stores of {@link newStore}. Reset for each server. */
export const time = { nowMs: START_MS }

export function newStore(): Store {
  return memoryStore({ clock: () => time.nowMs })
}

export function perMinute(limit: number): Limit {
  return slidingWindow({ limit, window: '1m', name: 'per-minute' })
}

/** Returns options with a limit of `limit` requests per minute and caller. */
export function limitedTo<Args extends HandlerArguments>(
  limit: number,
  options: GuardOptions<Args> = {},
): GuardOptions<Args> {
  return { limits: [perMinute(limit)], store: newStore(), ...options }
}

/** Starts a server for the running test. */
export async function serve<Args extends HandlerArguments>(
  adapter: AdapterUnderTest<Args>,
  options: GuardOptions<Args> | readonly GuardOptions<Args>[],
  settings?: { behindProxy?: boolean },
): Promise<Server> {
  time.nowMs = START_MS
  const server = await adapter.serve([options].flat(), settings)
  onTestFinished(() => server.close())
  return server
}

/** Waits until a condition is true, or the test times out. */
export async function until(isTrue: () => boolean | Promise<boolean>): Promise<void> {
  while (!(await isTrue())) await delay(2)
}

/** Sends a request with these headers. */
export function ask(
  server: Server,
  headers: Record<string, string> = {},
  init: RequestInit = {},
): Promise<Response> {
  return fetch(server.url, { ...init, headers })
}

export async function inTurn<T, R>(items: readonly T[], ask: (item: T) => Promise<R>): Promise<R[]> {
  const answers: R[] = []
  for (const item of items) answers.push(await ask(item))
  return answers
}

export async function statuses(server: Server, requests: number): Promise<number[]> {
  return await inTurn(Array(requests).fill(server.url), async (url) => (await fetch(url)).status)
}

/** Parses a structured list header with an independent parser. */
export function list(response: Response, name: string): [unknown, Record<string, unknown>][] {
  return parseList(response.headers.get(name) ?? '').map(([item, parameters]) => [
    item,
    Object.fromEntries(parameters),
  ])
}

export function rateLimitHeaders(response: Response): [string, string][] {
  return [...response.headers].filter(([name]) => name.includes('ratelimit'))
}
