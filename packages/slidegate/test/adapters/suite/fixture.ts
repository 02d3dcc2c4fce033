import { setTimeout as delay } from 'node:timers/promises'
import { parseList } from 'structured-headers'
import { onTestFinished } from 'vitest'
import type { GuardOptions, HandlerArguments } from '../../../src/http/index.ts'
import { type Limit, memoryStore, type Store, slidingWindow } from '../../../src/index.ts'

/** What a framework's adapter brings along to be held to the promises that all adapters share. */
export interface AdapterUnderTest<Args extends HandlerArguments> {
  /**
   * A real server on loopback. Every request passes `rateLimit` of each of the options, in order, and is then
   * answered with `served`, with the status that its header `x-status` asks for, else 200, and with its header `x-used`
   * if it has one. Errors are recorded and answered with 500. `behindProxy`: the framework
   * trusts a proxy on loopback, and nobody else, to say who the client is.
   */
  serve(options: readonly GuardOptions<Args>[], settings?: { behindProxy?: boolean }): Promise<Server>
  /** What a request says in a header, as a `key`, `cost` or `skip` function would read it. */
  header(request: Args[0], name: string): string | undefined
  /** Whether connections can be closed without an answer. Default: they can. */
  readonly drops?: boolean
  /** An `onDenied` that answers with 418 and `cost <the decision's cost>`. */
  readonly teapot: NonNullable<GuardOptions<Args>['onDenied']>
}

export interface Server {
  readonly url: string
  /** Requests that came past the limiters. */
  served(): number
  /** What the framework's error handler was given, one entry per call. */
  readonly errors: readonly unknown[]
  close(): Promise<void>
}

export const START_MS = 1_700_000_000_000

/** The time of all stores of {@link newStore}; set back for each server. */
export const time = { nowMs: START_MS }

export function newStore(): Store {
  return memoryStore({ clock: () => time.nowMs })
}

export function perMinute(limit: number): Limit {
  return slidingWindow({ limit, window: '1m', name: 'per-minute' })
}

/** Options that hold every caller to so many requests per minute. */
export function limitedTo<Args extends HandlerArguments>(
  limit: number,
  options: GuardOptions<Args> = {},
): GuardOptions<Args> {
  return { limits: [perMinute(limit)], store: newStore(), ...options }
}

/** A server for the running test. */
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

/** Waits until something has become true; the time limit of the test ends it otherwise. */
export async function until(isTrue: () => boolean | Promise<boolean>): Promise<void> {
  while (!(await isTrue())) await delay(2)
}

/** Asks with headers. */
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

/** A structured field list as an independent parser reads it. */
export function list(response: Response, name: string): [unknown, Record<string, unknown>][] {
  return parseList(response.headers.get(name) ?? '').map(([item, parameters]) => [
    item,
    Object.fromEntries(parameters),
  ])
}

export function rateLimitHeaders(response: Response): [string, string][] {
  return [...response.headers].filter(([name]) => name.includes('ratelimit'))
}
