// Errors as problems of RFC 9457, and how they are logged.

import { STATUS_CODES } from 'node:http'
import type { Socket } from 'node:net'
import type { FastifyError, FastifyReply, FastifyRequest } from 'fastify'
import type { Logger } from 'pino'
import {
  SlidegateError,
  type SlidegateErrorCode,
  StoreUnavailableError,
  type StoreUnavailableReason,
  WaitError,
} from 'slidegate'
import { retryAfterHeaders } from 'slidegate/http'
import { redactKey } from '../redact.ts'
import { ServiceError } from '../service/service-error.ts'
import type { App, Context } from './context.ts'

/** For a client to read why its connection is closed. */
const LINGER_MS = 1000

/** Characters of an error that distinguish it from others. */
const MOST_KIND = 200

const PROBLEM_TYPE = 'application/problem+json; charset=utf-8'

/** A problem of RFC 9457. */
interface ErrorBody {
  readonly title: string
  readonly status: number
  readonly code: string
  readonly detail: string
}

/** What callers are told where the store gave no answer: nothing of where it is, or what it said. */
const STORE_DETAILS: Readonly<Record<StoreUnavailableReason, string>> = {
  timeout: 'the store gave no answer in time; whether the request was charged is not known',
  error: 'the store gave no answer',
  down: 'the store has failed too often lately, and is not asked for a moment',
  overload: 'too many requests wait for the store already',
  invalid_state: 'what is stored for this key is damaged',
  full: 'the store is full of keys that are at their limit',
}

/** The statuses of library errors that aren't 400. */
const STATUSES: Readonly<Partial<Record<SlidegateErrorCode, number>>> = {
  closed: 503,
  reused_request_id: 422,
}

/** What callers are told of the framework's errors: their codes are not its own. */
const FRAMEWORK_CODES: Readonly<Record<string, readonly [code: string, detail: string]>> = {
  FST_ERR_CTP_INVALID_JSON_BODY: ['invalid_json', 'the body is no JSON, or has a key such as __proto__'],
  FST_ERR_CTP_EMPTY_JSON_BODY: ['invalid_json', 'the body is empty; it must be JSON'],
  FST_ERR_CTP_INVALID_MEDIA_TYPE: ['unsupported_media_type', 'the Content-Type must be application/json'],
  FST_ERR_CTP_BODY_TOO_LARGE: [
    'body_too_large',
    'the body is longer than caps.bodyBytes of the configuration',
  ],
  FST_ERR_CTP_INVALID_CONTENT_LENGTH: [
    'invalid_request',
    'the body is not as long as the Content-Length says',
  ],
  FST_ERR_BAD_URL: ['invalid_request', 'the path is not well-formed'],
}

/** What a caller is told of an error; of those that are none of his, nothing but that. */
export function errorBodyOf(error: unknown): ErrorBody {
  if (error instanceof ServiceError) return bodyOf(error.status, error.code, error.message)
  if (error instanceof StoreUnavailableError) {
    return bodyOf(503, `store_${error.reason}`, STORE_DETAILS[error.reason] ?? STORE_DETAILS.error)
  }
  if (error instanceof WaitError) return bodyOf(429, `wait_${error.reason}`, error.message)
  if (error instanceof SlidegateError) return bodyOf(STATUSES[error.code] ?? 400, error.code, error.message)
  const { statusCode = 500, code = '' } = (error ?? {}) as Partial<FastifyError>
  if (statusCode < 400 || statusCode >= 500) return bodyOf(500, 'internal', 'it is in the log of the service')
  const known = FRAMEWORK_CODES[code]
  return bodyOf(statusCode, known?.[0] ?? 'invalid_request', known?.[1] ?? 'the request cannot be read')
}

function bodyOf(status: number, code: string, detail: string): ErrorBody {
  return { title: STATUS_CODES[status] ?? 'Error', status, code, detail }
}

export function sendProblem(reply: FastifyReply, body: ErrorBody): FastifyReply {
  return reply.code(body.status).type(PROBLEM_TYPE).send(JSON.stringify(body))
}

export function answerErrors(app: App, { log, service }: Context): void {
  const failures = new FailureLog(log)
  app.addHook('onClose', async () => failures.flush())
  app.setErrorHandler((error, request, reply) => {
    const body = errorBodyOf(error)
    logFailure(error, body, request)
    for (const { name, value } of retryHeadersOf(error, body)) reply.header(name, value)
    return sendProblem(reply, body)
  })
  app.setNotFoundHandler((request, reply) => {
    const body = bodyOf(404, 'not_found', 'there is no such route; they are in /openapi.json')
    logFailure(undefined, body, request)
    return sendProblem(reply, body)
  })

  /** Logs the limiter and the caller, never the text of a request. */
  function logFailure(error: unknown, { status, code }: ErrorBody, request: FastifyRequest): void {
    const level = status === 500 ? 'error' : status > 500 ? 'warn' : 'info'
    if (!log.isLevelEnabled(level)) return
    const { limiter, key } = (request.body ?? {}) as { limiter?: unknown; key?: unknown }
    const isKnown = typeof limiter === 'string' && service.has(limiter)
    const fields = {
      method: request.method,
      route: request.routeOptions.url,
      status,
      code,
      caller: request.caller?.name,
      ...(isKnown && { limiter }),
      ...(key !== undefined && { key: redactKey(key, service.config) }),
      ...(status >= 500 && !(error instanceof ServiceError) && { err: error }),
    }
    if (level === 'info') log.info(fields, 'a request has failed')
    else failures.failed(level, code, status === 500 ? String(error).slice(0, MOST_KIND) : '', fields)
  }
}

function retryHeadersOf(error: unknown, { status }: ErrorBody): readonly { name: string; value: string }[] {
  if (error instanceof WaitError && error.decision !== undefined) return retryAfterHeaders(error.decision)
  if (status === 503) return [{ name: 'Retry-After', value: '1' }]
  if (status === 401) return [{ name: 'WWW-Authenticate', value: 'Bearer realm="slidegate"' }]
  return []
}

/** What is no request at all, or too slow, is answered on the connection itself, and that is closed. */
export function answerClientError(error: NodeJS.ErrnoException, socket: Socket): void {
  if (error.code === 'ECONNRESET' || !socket.writable) {
    socket.destroy()
    return
  }
  const [status, detail] =
    error.code === 'ERR_HTTP_REQUEST_TIMEOUT'
      ? [408, 'the request did not arrive in time']
      : error.code === 'HPE_HEADER_OVERFLOW'
        ? [431, 'the headers are too long']
        : [400, 'this is no HTTP request']
  const body = JSON.stringify(bodyOf(status as number, 'invalid_request', detail as string))
  socket.end(
    `HTTP/1.1 ${status} ${STATUS_CODES[status as number]}\r\nContent-Type: ${PROBLEM_TYPE}\r\nContent-Length: ${Buffer.byteLength(body)}\r\nConnection: close\r\n\r\n${body}`,
  )
  // Nobody looks after it any more; a client that leaves it open would keep it for ever.
  setTimeout(() => socket.destroy(), LINGER_MS).unref()
}

const COUNT_MS = 1000

/** A kind that was not seen for this long is logged in full again. */
const FORGET_MS = 60_000

/** Kinds that it distinguishes. */
const MOST_KINDS = 64

/**
 * Logs failed requests: the first of a kind in full, then counts.
 *
 * Counts take one line a second. In an outage nearly all requests fail, and a line for each would fill the disk.
 */
export class FailureLog {
  readonly #log: Logger
  /** When each was seen last. */
  readonly #kinds = new Map<string, number>()
  #counts: Record<string, number> = {}
  #timer: NodeJS.Timeout | undefined

  constructor(log: Logger) {
    this.#log = log
  }

  /**
   * @param code the one in the response: failures are counted by it
   * @param kind distinguishes failures of the same code
   */
  failed(level: 'warn' | 'error', code: string, kind: string, fields: object): void {
    if (this.#isNew(`${code} ${kind}`)) {
      this.#log[level](fields, 'a request has failed')
      return
    }
    this.#counts[code] = (this.#counts[code] ?? 0) + 1
    this.#timer ??= setTimeout(() => this.flush(), COUNT_MS).unref()
  }

  flush(): void {
    clearTimeout(this.#timer)
    this.#timer = undefined
    const counts = this.#counts
    if (Object.keys(counts).length === 0) return
    this.#counts = {}
    this.#log.warn({ requests: counts }, 'more requests have failed')
  }

  #isNew(kind: string): boolean {
    const nowMs = performance.now()
    const seenMs = this.#kinds.get(kind)
    if (seenMs === undefined && this.#kinds.size >= MOST_KINDS) this.#forget(nowMs)
    if (seenMs !== undefined || this.#kinds.size < MOST_KINDS) this.#kinds.set(kind, nowMs)
    return seenMs === undefined ? this.#kinds.has(kind) : nowMs - seenMs > FORGET_MS
  }

  #forget(nowMs: number): void {
    for (const [kind, seenMs] of this.#kinds) if (nowMs - seenMs > FORGET_MS) this.#kinds.delete(kind)
  }
}
