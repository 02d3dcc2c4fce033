// Sends requests to a service over HTTP; its errors have an exit code.

import * as http from 'node:http'
import * as https from 'node:https'
import { messageOf } from '#replay/errors.js'

/** A service, and who asks it. */
export interface Target {
  readonly url: URL
  readonly token?: string | undefined
  /** Certificates, as `node:tls` takes them. */
  readonly ca?: string | undefined
  readonly cert?: string | undefined
  readonly key?: string | undefined
}

export interface Answer {
  readonly status: number
  readonly body: unknown
}

/** A server-sent event. */
interface ServerEvent {
  readonly event: string
  readonly data: string
}

const ANSWER_MS = 10_000

/** For what is long. */
const TEXT_MS = 60_000

const MAX_BYTES = 64 * 2 ** 20

/** A service over HTTP. Every method rejects with a {@link ClientError}. */
export class ServiceClient {
  readonly #target: Target

  constructor(target: Target) {
    this.#target = target
  }

  /**
   * What was asked for; what says that it cannot be had is an error.
   *
   * @param field of a right answer: whoever answers without it is no slidegate
   */
  async ask(method: string, path: string, field: string, body?: unknown): Promise<unknown> {
    const answer = await this.answer(method, path, body)
    if (answer.status === 200 && has(answer.body, field)) return answer.body
    throw this.#wrong(answer)
  }

  /** A decision. A denial is one; 429 without one, of a service that has too much to do, is an error. */
  async decide(path: string, body: unknown): Promise<unknown> {
    const answer = await this.answer('POST', path, body)
    if (has(answer.body, 'allowed')) return answer.body
    throw this.#wrong(answer)
  }

  /** Whoever answers otherwise, and does not say why, is something else, such as a proxy that leads elsewhere. */
  #wrong(answer: Answer): ClientError {
    const { status } = answer
    if (status >= 400) return refusalOf(answer)
    return new ClientError(
      EXIT.failure,
      `${this.#target.url.origin} answers, but not as slidegate does (HTTP ${status})`,
    )
  }

  /** The answer, whatever its status is. */
  async answer(method: string, path: string, body?: unknown): Promise<Answer> {
    const response = await this.#send(method, path, body, AbortSignal.timeout(ANSWER_MS))
    const text = await this.#textOf(response)
    return { status: response.statusCode ?? 0, body: bodyOf(text) }
  }

  /** A long text as it comes; what says that it cannot be had is an error. */
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

  /** Lines of JSON as they come. */
  async *lines(path: string): AsyncGenerator<string> {
    let rest = ''
    for await (const part of this.text(path, 'application/x-ndjson')) {
      const lines = (rest + part).split('\n')
      rest = lines.pop()!
      yield* lines
    }
  }

  /** Events for as long as there are any, or until the signal. */
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
        if (rest.length > MAX_BYTES) throw new Error('an event does not end')
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
        if (text.length > MAX_BYTES) throw new Error(`the answer has more than ${MAX_BYTES} bytes`)
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
    const why =
      (error as Error).name === 'AbortError' ? `no answer within ${ANSWER_MS / 1000} s` : messageOf(error)
    return new ClientError(EXIT.unreachable, `cannot reach ${this.#target.url.origin}: ${why}`)
  }
}

/** What is below the address of a service, which may have a path of its own. */
export function urlAt({ href }: URL, path: string): URL {
  return new URL((href.endsWith('/') ? href.slice(0, -1) : href) + path)
}

function has(body: unknown, field: string): boolean {
  return typeof body === 'object' && body !== null && Object.hasOwn(body, field)
}

/** An answer that says why not: as a sentence. */
function refusalOf({ status, body }: Answer): ClientError {
  const { detail, code } =
    ((typeof body === 'object' ? body : undefined) as { detail?: unknown; code?: unknown }) ?? {}
  const what = typeof detail === 'string' ? detail : 'the service has said no more'
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

/** What commands that ask a service end with, besides 0. */
export const EXIT = {
  /** It has failed: the store gave no answer, for instance. */
  failure: 1,
  /** The command, or what it asks for, is wrong. */
  usage: 2,
  /** The request was denied. */
  denied: 3,
  /** The service cannot be reached. */
  unreachable: 4,
  /** The service does not let this caller. */
  refused: 5,
} as const

/** What a service has answered, or that it has not. */
export class ClientError extends Error {
  override readonly name = 'ClientError'
  readonly exitCode: number

  constructor(exitCode: number, message: string) {
    super(message)
    this.exitCode = exitCode
  }
}
