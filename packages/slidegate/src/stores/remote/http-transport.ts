// Sends bodies to a service with fetch, and reads the answers.

import { StoreUnavailableError, type StoreUnavailableReason, show } from '../../errors.ts'
import { asyncOrigin, backgroundTimer } from '../../runtime/platform.ts'
import type { Receiver, Result, Transport } from '../redis/batcher.ts'
import type { Request } from '../redis/encode.ts'
import type { Batch } from '../redis/queue.ts'
import type { Start } from '../start.ts'
import { type Body, bodiesOf, readAnswer } from './bodies.ts'
import { isReason } from './outcomes.ts'

/** The part of `fetch` that is used. */
export type Fetch = (url: string, init: RequestInit) => Promise<Response>

/** The service's URL, and how to call it. */
export interface Address {
  readonly url: string
  readonly fetch: Fetch
  /** The current token. */
  readonly token: () => string | undefined | Promise<string | undefined>
}

/** Timeout of a call. Callers time out sooner, and return a charge when its late answer arrives. */
const LOST_MS = 10_000

/** Maximum bytes of an answer, more than for any body. */
const MAX_ANSWER = 2 ** 25

/** Maximum bytes of an answer with an error. */
const MAX_PROBLEM = 2 ** 16

/** Sends ops by HTTP. A call that may have arrived is never resent. */
export class HttpTransport implements Transport {
  /** Calls may arrive in any order. */
  readonly isOrdered = false
  readonly isReady = true
  readonly server: string
  readonly #address: Address
  readonly #underWay: Set<AbortController>
  readonly #start: Start
  /** The async context of sockets and timers, which must not retain that of a request. */
  readonly #origin = asyncOrigin('slidegate.client')

  /**
   * @param underWay holds the calls that `close` can end
   * @param start ended by the first answer
   */
  constructor(address: Address, underWay: Set<AbortController>, start: Start) {
    this.#address = address
    this.#underWay = underWay
    this.#start = start
    this.server = serviceAt(address)
  }

  send(batch: Batch, receiver: Receiver): void {
    this.#resultsOf(batch.ops).then(
      (results) => receiver.answered(batch, results),
      (error: unknown) => receiver.failed(batch, error),
    )
  }

  async #resultsOf(batch: readonly Request[]): Promise<readonly Result[]> {
    const results: Result[] = []
    for (const body of bodiesOf(batch)) {
      try {
        results.push(...(await this.#origin.runInAsyncScope(() => this.#ask(body))))
      } catch (error) {
        // The other bodies may have been decided.
        const failed = asNoAnswer(error, this.server)
        for (const _ of body.asked) results.push(failed)
      }
    }
    return results
  }

  lost(): void {}

  async #ask({ text, asked }: Body): Promise<readonly Result[]> {
    const ending = new AbortController()
    const timer = backgroundTimer(() => ending.abort(), LOST_MS)
    this.#underWay.add(ending)
    try {
      const token = await this.#address.token()
      const response = await this.#address.fetch(this.#address.url, {
        method: 'POST',
        headers: {
          'content-type': 'application/json',
          accept: 'application/json',
          ...(token !== undefined && { authorization: `Bearer ${token}` }),
        },
        body: text,
        signal: ending.signal,
        // A redirect must not receive the token or charge anything. (Workers don't support `error`.)
        redirect: 'manual',
      })
      if (response.status !== 200) throw await problemIn(response, this.server)
      return readAnswer(asked, JSON.parse(await textOf(response, MAX_ANSWER)))
    } finally {
      clearTimeout(timer)
      this.#start.end()
      this.#underWay.delete(ending)
    }
  }
}

/** The name of the service in messages. */
export function serviceAt({ url }: Address): string {
  return `the service at ${url.replace(/\/v1\/store$/, '')}`
}

/** The error of a call. The ops may have been charged. */
function asNoAnswer(error: unknown, service: string): StoreUnavailableError {
  if (error instanceof StoreUnavailableError) return error
  // Errors of `fetch` have the reason as their cause.
  const { message = show(error), cause } = error as { readonly message?: string; readonly cause?: unknown }
  const because = (cause as { readonly message?: string } | undefined)?.message
  const detail = because === undefined || because === '' ? message : `${message}: ${because}`
  return new StoreUnavailableError('error', `the request to ${service} failed: ${detail}`, { cause: error })
}

/** The error for an answer other than 200, from the service or a proxy. */
async function problemIn(response: Response, service: string): Promise<StoreUnavailableError> {
  const { status } = response
  const problem = await textOf(response, MAX_PROBLEM)
    .then(JSON.parse)
    .catch(() => undefined)
  const { code, detail } = (problem ?? {}) as { readonly code?: unknown; readonly detail?: unknown }
  const more = typeof detail === 'string' ? `: ${detail.slice(0, 1000)}` : ''
  return new StoreUnavailableError(reasonOf(status, code), `${service} answered ${status}${more}`)
}

/** An overloaded service rejects before it charges. */
function reasonOf(status: number, code: unknown): StoreUnavailableReason {
  if (status === 429 || code === 'overloaded') return 'overload'
  const reason = typeof code === 'string' ? code.replace(/^store_/, '') : undefined
  return status === 503 && isReason(reason) ? reason : 'error'
}

/** Reads the body of an answer, up to a maximum size. */
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
      throw new Error(`the answer has more than ${mostBytes} bytes`)
    }
    text += decoder.decode(value, { stream: true })
  }
}
