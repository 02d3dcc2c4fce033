// The HTTP client of the command line. Its errors have exit codes.

import * as http from 'node:http'
import * as https from 'node:https'
import { messageOf } from '../../../replay/src/errors.ts'

/** A service, and the credentials for calling it. */
export interface Target {
  readonly url: URL
  readonly token?: string | undefined
  /** Certificates and key in PEM, as for `node:tls`. */
  readonly ca?: string | undefined
  readonly cert?: string | undefined
  readonly key?: string | undefined
  /** Timeout for a request, in milliseconds. Default: 10,000. */
  readonly timeoutMs?: number
}

export interface Answer {
  readonly status: number
  readonly body: unknown
}

interface ServerEvent {
  readonly event: string
  readonly data: string
}

const ANSWER_MS = 10_000

/** Timeout for long responses, such as a capture. */
const TEXT_MS = 60_000

const MAX_BYTES = 64 * 2 ** 20

/** Calls a service over HTTP. Every method rejects with a {@link ClientError}. */
export class ServiceClient {
  readonly #target: Target

  constructor(target: Target) {
    this.#target = target
  }

  /**
   * Sends a request and returns the body. Any status except 200 is an error.
   *
   * @param field a field of every valid response: a response without it isn't from slidegate
   */
  async ask(method: string, path: string, field: string, body?: unknown): Promise<unknown> {
    const answer = await this.answer(method, path, body)
    if (answer.status === 200 && has(answer.body, field)) return answer.body
    throw this.#wrong(answer)
  }

  /** Requests a decision. A denial is a decision, too, but a 429 without a decision is an error. */
  async decide(path: string, body: unknown): Promise<unknown> {
    const answer = await this.answer('POST', path, body)
    if (has(answer.body, 'allowed')) return answer.body
    throw this.#wrong(answer)
  }

  /** Returns the error for an unexpected response. A status below 400 comes from another server, such as a proxy. */
  #wrong(answer: Answer): ClientError {
    const { status } = answer
    if (status >= 400) return refusalOf(answer)
    return new ClientError(
      EXIT.failure,
      `unexpected response from ${this.#target.url.origin} (HTTP ${status}); is it a slidegate service?`,
    )
  }

  /** Sends a request and returns the response, regardless of its status. */
  async answer(method: string, path: string, body?: unknown): Promise<Answer> {
    const { timeoutMs = ANSWER_MS } = this.#target
    const response = await this.#send(method, path, body, AbortSignal.timeout(timeoutMs))
    const text = await this.#textOf(response)
    return { status: response.statusCode ?? 0, body: bodyOf(text) }
  }

  /** Streams a long text. Any status except 200 is an error. */
  async *text(path: string, type: string): AsyncGenerator<string> {
    const response = await this.#send('GET', path, undefined, AbortSignal.timeout(TEXT_MS))
    const { statusCode: status = 0, headers } = response
    if (status !== 200 || headers['content-type']?.startsWith(type) !== true) {
      throw this.#wrong({ status, body: bodyOf(await this.#textOf(response)) })
    }
    try {
      yield* response.setEncoding('utf8')
    } catch (error) {
      throw this.#unreachable(error)
    }
  }

  /** Streams lines of JSON. */
  async *lines(path: string): AsyncGenerator<string> {
    let rest = ''
    for await (const part of this.text(path, 'application/x-ndjson')) {
      const lines = (rest + part).split('\n')
      rest = lines.pop()!
      yield* lines
    }
  }

  /** Streams server-sent events until the stream ends or the signal aborts. */
  async *events(path: string, signal: AbortSignal): AsyncGenerator<ServerEvent> {
    const response = await this.#send('GET', path, undefined, signal).catch((error) => {
      if (!signal.aborted) throw error
    })
    if (response === undefined) return
    if (response.statusCode !== 200) {
      throw refusalOf({ status: response.statusCode ?? 0, body: bodyOf(await this.#textOf(response)) })
    }
    let rest = ''
    try {
      for await (const part of response.setEncoding('utf8')) {
        const blocks = (rest + part).split('\n\n')
        rest = blocks.pop()!
        if (rest.length > MAX_BYTES) throw new Error(`an event has more than ${MAX_BYTES} bytes`)
        for (const block of blocks) {
          const event = /^event: (.*)$/m.exec(block)?.[1]
          const data = /^data: (.*)$/m.exec(block)?.[1]
          if (event !== undefined && data !== undefined) yield { event, data }
        }
      }
    } catch (error) {
      if (!signal.aborted) throw this.#unreachable(error)
    }
  }

  async #textOf(response: http.IncomingMessage): Promise<string> {
    let text = ''
    try {
      for await (const part of response.setEncoding('utf8')) {
        text += part
        if (text.length > MAX_BYTES) throw new Error(`the response has more than ${MAX_BYTES} bytes`)
      }
    } catch (error) {
      throw this.#unreachable(error)
    }
    return text
  }

  #send(method: string, path: string, body: unknown, signal: AbortSignal): Promise<http.IncomingMessage> {
    const { url, token, ca, cert, key } = this.#target
    const text = body === undefined ? undefined : JSON.stringify(body)
    const headers = {
      accept: 'application/json, text/event-stream',
      ...(token !== undefined && { authorization: `Bearer ${token}` }),
      ...(text !== undefined && {
        'content-type': 'application/json',
        'content-length': Buffer.byteLength(text),
      }),
    }
    const { request } = url.protocol === 'https:' ? https : http
    return new Promise((resolve, reject) => {
      const failed = (error: unknown) => reject(this.#unreachable(error))
      try {
        const options = { method, headers, signal, agent: false as const, ca, cert, key }
        request(urlAt(url, path), options, resolve).on('error', failed).end(text)
      } catch (error) {
        failed(error)
      }
    })
  }

  #unreachable(error: unknown): ClientError {
    const { timeoutMs = ANSWER_MS } = this.#target
    const why =
      (error as Error).name === 'AbortError' ? `no response within ${timeoutMs / 1000} s` : messageOf(error)
    return new ClientError(EXIT.unreachable, `cannot reach ${this.#target.url.origin}: ${why}`)
  }
}

/** Returns the URL of a path below the service's URL. */
export function urlAt({ href }: URL, path: string): URL {
  return new URL((href.endsWith('/') ? href.slice(0, -1) : href) + path)
}

function has(body: unknown, field: string): boolean {
  return typeof body === 'object' && body !== null && Object.hasOwn(body, field)
}

/** Returns the error for a response with an error status. */
function refusalOf({ status, body }: Answer): ClientError {
  const { detail, code } =
    ((typeof body === 'object' ? body : undefined) as { detail?: unknown; code?: unknown }) ?? {}
  const what = typeof detail === 'string' ? detail : 'the request failed, and the response gives no reason'
  const which = typeof code === 'string' ? `, ${code}` : ''
  return new ClientError(exitCodeOf(status), `${what} (HTTP ${status}${which})`)
}

function exitCodeOf(status: number): number {
  if (status === 401 || status === 403) return EXIT.refused
  return status >= 400 && status < 500 && status !== 429 ? EXIT.usage : EXIT.failure
}

function bodyOf(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return text
  }
}

/** Exit codes of commands that call a service, other than 0. */
export const EXIT = {
  /** The service failed, for example because its store is unavailable. */
  failure: 1,
  /** The command or the request is invalid. */
  usage: 2,
  /** The request was denied. */
  denied: 3,
  /** The service cannot be reached. */
  unreachable: 4,
  /** The token is missing or unknown, or lacks the required role. */
  refused: 5,
} as const

/** A failed request to a service. */
export class ClientError extends Error {
  override readonly name = 'ClientError'
  readonly exitCode: number

  constructor(exitCode: number, message: string) {
    super(message)
    this.exitCode = exitCode
  }
}
