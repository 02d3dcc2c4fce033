// Sends bodies to a service with fetch, and reads the answers.

import { noConnection, plainError, StoreUnavailableError, type StoreUnavailableReason } from '../../errors.ts'
import { asyncOrigin, backgroundTimer } from '../../runtime/platform.ts'
import type { Result, Transport } from '../redis/batcher.ts'
import type { Request } from '../redis/encode.ts'
import type { Start } from '../start.ts'
import { type Body, bodiesOf, readAnswer } from './bodies.ts'
import { isReason } from './outcomes.ts'

/** The part of `fetch` that this file uses. */
export type Fetch = (url: string, init: RequestInit) => Promise<Response>

/** The service's URL, and how to call it. */
export interface Address {
  /** The service's name in messages: `the service at https://limits.example.com`. */
  readonly service: string
  readonly url: string
  readonly fetch: Fetch
  readonly token: () => string | undefined | Promise<string | undefined>
}

/** Timeout for a call. Its requests time out sooner. If an answer still arrives, their charges are refunded. */
const LOST_MS = 10_000

/** Maximum bytes in an answer. No valid answer is that long. */
const MAX_ANSWER = 2 ** 25

const MAX_PROBLEM = 2 ** 16

/**
 * Sends ops over HTTP. Never resends a call, because it may have been charged.
 *
 * @param underWay receives the calls in flight, for `close`
 * @param start the store's startup, which ends with the first answer
 */
export function httpTransport(address: Address, underWay: Set<AbortController>, start: Start): Transport {
  const { service } = address
  const origin = asyncOrigin('slidegate.client')

  async function ask({ text, asked }: Body): Promise<readonly Result[]> {
    const ending = new AbortController()
    const timer = backgroundTimer(() => ending.abort(), LOST_MS)
    underWay.add(ending)
    try {
      const token = await address.token()
      const response = await address.fetch(address.url, {
        method: 'POST',
        headers: {
          'content-type': 'application/json',
          accept: 'application/json',
          ...(token !== undefined && { authorization: `Bearer ${token}` }),
        },
        body: text,
        signal: ending.signal,
        // The target of a redirect must not receive the token. (Workers don't support `redirect: 'error'`.)
        redirect: 'manual',
      })
      if (response.status !== 200) throw await problemIn(response, service)
      return readAnswer(asked, JSON.parse(await textOf(response, MAX_ANSWER)))
    } finally {
      clearTimeout(timer)
      start.end()
      underWay.delete(ending)
    }
  }

  /** Converts an error from `fetch`. If there was no connection, the message says so: nothing was charged. */
  function failure(error: unknown): StoreUnavailableError {
    if (error instanceof StoreUnavailableError) return error
    const { cause = error } = error as { readonly cause?: unknown }
    const { syscall } = (cause ?? {}) as { readonly syscall?: unknown }
    if (syscall === 'connect' || syscall === 'getaddrinfo') return noConnection(service, error, cause)
    const message = `the request to ${service} failed: ${plainError(cause).message}`
    return new StoreUnavailableError('error', message, { cause: error })
  }

  async function resultsOf(batch: readonly Request[]): Promise<readonly Result[]> {
    const results: Result[] = []
    for (const body of bodiesOf(batch)) {
      try {
        results.push(...(await origin.runInAsyncScope(() => ask(body))))
      } catch (error) {
        // The other bodies may have been decided.
        const failed = failure(error)
        for (const _ of body.asked) results.push(failed)
      }
    }
    return results
  }

  return {
    // Calls may arrive in any order.
    isOrdered: false,
    isReady: true,
    send(batch, receiver) {
      resultsOf(batch.ops).then(
        (results) => receiver.answered(batch, results),
        (error: unknown) => receiver.failed(batch, error),
      )
    },
    failure,
    lost() {},
  }
}

/** The error for a status other than 200. The answer may be from a proxy. */
async function problemIn(response: Response, service: string): Promise<StoreUnavailableError> {
  const { status } = response
  const problem = await textOf(response, MAX_PROBLEM)
    .then(JSON.parse)
    .catch(() => undefined)
  const { code, detail } = (problem ?? {}) as { readonly code?: unknown; readonly detail?: unknown }
  const more = typeof detail === 'string' ? `: ${detail.slice(0, 1000)}` : ''
  return new StoreUnavailableError(reasonOf(status, code), `${service} answered ${status}${more}`)
}

/** Returns the reason for a status. The reason `overload` means that nothing was charged. */
function reasonOf(status: number, code: unknown): StoreUnavailableReason {
  if (status === 429 || code === 'overloaded') return 'overload'
  const reason = typeof code === 'string' ? code.replace(/^store_/, '') : undefined
  return status === 503 && isReason(reason) ? reason : 'error'
}

async function textOf({ body }: Response, mostBytes: number): Promise<string> {
  if (body === null) return ''
  const decoder = new TextDecoder()
  const reader = body.getReader()
  let text = ''
  let bytes = 0
  for (;;) {
    const { done, value } = await reader.read()
    if (done) return text + decoder.decode()
    bytes += value.length
    if (bytes > mostBytes) {
      reader.cancel().catch(() => {})
      throw new Error(`the response has more than ${mostBytes} bytes`)
    }
    text += decoder.decode(value, { stream: true })
  }
}
