// Sends bodies to a service by fetch, and reads its answers.

import { StoreUnavailableError, type StoreUnavailableReason, show } from '../../errors.ts'
import { asyncOrigin, backgroundTimer } from '../../runtime/platform.ts'
import type { Result, Transport } from '../redis/batcher.ts'
import type { Request } from '../redis/encode.ts'
import type { Start } from '../start.ts'
import { type Body, bodiesOf, readAnswer } from './bodies.ts'
import { isReason } from './outcomes.ts'

/** What is used of `fetch`. */
export type Fetch = (url: string, init: RequestInit) => Promise<Response>

/** Where the service is, and how it is asked. */
export interface Address {
  readonly url: string
  readonly fetch: Fetch
  /** The token of this moment. */
  readonly token: () => string | undefined | Promise<string | undefined>
}

/** Nobody waits for so long; but what was charged meanwhile is returned when the answer comes. */
const LOST_MS = 10_000

/** Bytes of an answer at most: more than all that one body can ask for. */
const MAX_ANSWER = 2 ** 25

/** Of an answer that says what is wrong. */
const MAX_PROBLEM = 2 ** 16

/** Carries ops in bodies of HTTP. What may have arrived is never sent again. */
export class HttpTransport implements Transport {
  /** Of two calls either may arrive first: one at a time, so that what is asked first is decided first. */
  readonly isOrdered = false
  readonly isReady = true
  readonly server: string
  readonly #address: Address
  readonly #underWay: Set<AbortController>
  readonly #start: Start
  /** For sockets and timers: made on behalf of a request, they would keep its async context. */
  readonly #origin = asyncOrigin('slidegate.client')

  /**
   * @param underWay holds the calls that `close` can end
   * @param start ended with the first answer
   */
  constructor(address: Address, underWay: Set<AbortController>, start: Start) {
    this.#address = address
    this.#underWay = underWay
    this.#start = start
    this.server = serviceAt(address)
  }

  async send(batch: readonly Request[]): Promise<readonly Result[]> {
    const results: Result[] = []
    for (const body of bodiesOf(batch)) {
      try {
        results.push(...(await this.#origin.runInAsyncScope(() => this.#ask(body))))
      } catch (error) {
        // Others may have been decided.
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
        // Nobody else is told the token, nor asked to charge. (Workers do not know `error`.)
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

/** For messages. */
export function serviceAt({ url }: Address): string {
  return `the service at ${url.replace(/\/v1\/store$/, '')}`
}

/** Whether anything was charged nobody knows, unless the reason says so. */
function asNoAnswer(error: unknown, service: string): StoreUnavailableError {
  if (error instanceof StoreUnavailableError) return error
  // What `fetch` rejects with has the reason behind it.
  const { message = show(error), cause } = error as { readonly message?: string; readonly cause?: unknown }
  const because = (cause as { readonly message?: string } | undefined)?.message
  const detail = because === undefined || because === '' ? message : `${message}: ${because}`
  return new StoreUnavailableError('error', `asking ${service} failed: ${detail}`, { cause: error })
}

/** What a service says where it does not decide, or whoever else answers in its place. */
async function problemIn(response: Response, service: string): Promise<StoreUnavailableError> {
  const { status } = response
  const { code, detail } = await problemOf(response)
  const told = typeof detail === 'string' ? `: ${detail.slice(0, 1000)}` : ''
  return new StoreUnavailableError(reasonOf(status, code), `${service} answered ${status}${told}`)
}

/** Those who ask too much are refused before anything is charged. */
function reasonOf(status: number, code: unknown): StoreUnavailableReason {
  if (status === 429 || code === 'overloaded') return 'overload'
  const reason = typeof code === 'string' ? code.replace(/^store_/, '') : undefined
  return status === 503 && isReason(reason) ? reason : 'error'
}

async function problemOf(
  response: Response,
): Promise<{ readonly code?: unknown; readonly detail?: unknown }> {
  try {
    return JSON.parse(await textOf(response, MAX_PROBLEM)) ?? {}
  } catch {
    return {}
  }
}

/** The body of an answer, which is not read for ever. */
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
      throw new Error(`it is longer than ${mostBytes} bytes`)
    }
    text += decoder.decode(value, { stream: true })
  }
}
