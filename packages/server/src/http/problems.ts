// Turns errors into problem details (RFC 9457), and logs them.

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

/** How long a client has to read the response before its connection is destroyed. */
const LINGER_MS = 1000

/** Number of characters to compare when errors are grouped by their text. */
const MOST_KIND = 200

const PROBLEM_TYPE = 'application/problem+json; charset=utf-8'

/** Problem details, as defined in RFC 9457. */
interface ErrorBody {
  readonly title: string
  readonly status: number
  readonly code: string
  readonly detail: string
}

/** Details for store errors. These texts don't reveal the store's address or error messages to callers. */
const STORE_DETAILS: Readonly<Record<StoreUnavailableReason, string>> = {
  timeout: 'the store timed out; the request may or may not have been charged',
  error: 'the store failed',
  down: 'the store has failed repeatedly, so the service has paused calls to it',
  overload: 'too many requests are already waiting for the store',
  invalid_state: 'the stored state of this key is damaged',
  full: 'the store is full of keys that have reached their limit',
}

/** The statuses for library errors, if they aren't 400. */
const STATUSES: Readonly<Partial<Record<SlidegateErrorCode, number>>> = {
  closed: 503,
  reused_request_id: 422,
}

/** Codes and details for Fastify's errors. */
const FRAMEWORK_CODES: Readonly<Record<string, readonly [code: string, detail: string]>> = {
  FST_ERR_CTP_INVALID_JSON_BODY: [
    'invalid_json',
    "the body isn't valid JSON, or has a key such as __proto__",
  ],
  FST_ERR_CTP_EMPTY_JSON_BODY: ['invalid_json', 'the body is empty; it must be JSON'],
  FST_ERR_CTP_INVALID_MEDIA_TYPE: ['unsupported_media_type', 'the Content-Type must be application/json'],
  FST_ERR_CTP_BODY_TOO_LARGE: [
    'body_too_large',
    'the body is larger than caps.bodyBytes in the configuration',
  ],
  FST_ERR_CTP_INVALID_CONTENT_LENGTH: ['invalid_request', "the body's length doesn't match Content-Length"],
  FST_ERR_BAD_URL: ['invalid_request', 'the path is malformed'],
}

/** Returns the response body for an error. Internal errors reveal nothing. */
export function errorBodyOf(error: unknown): ErrorBody {
  if (error instanceof ServiceError) return bodyOf(error.status, error.code, error.message)
  if (error instanceof StoreUnavailableError) {
    return bodyOf(503, `store_${error.reason}`, STORE_DETAILS[error.reason] ?? STORE_DETAILS.error)
  }
  if (error instanceof WaitError) return bodyOf(429, `wait_${error.reason}`, error.message)
  if (error instanceof SlidegateError) return bodyOf(STATUSES[error.code] ?? 400, error.code, error.message)
  const { statusCode = 500, code = '' } = (error ?? {}) as Partial<FastifyError>
  if (statusCode < 400 || statusCode >= 500)
    return bodyOf(500, 'internal', "internal error; see the service's log")
  const known = FRAMEWORK_CODES[code]
  return bodyOf(statusCode, known?.[0] ?? 'invalid_request', known?.[1] ?? 'the request is malformed')
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
    const body = bodyOf(404, 'not_found', 'no such route; /openapi.json lists all routes')
    logFailure(undefined, body, request)
    return sendProblem(reply, body)
  })

  /** Logs a failed request: limiter, caller and redacted key, never the content. */
  function logFailure(error: unknown, { status, code }: ErrorBody, request: FastifyRequest): void {
    const isRefused = code === 'unauthorized'
    const level = status === 500 ? 'error' : status > 500 || isRefused ? 'warn' : 'info'
    if (!log.isLevelEnabled(level)) return
    const { limiter, key } = (request.body ?? {}) as { limiter?: unknown; key?: unknown }
    const isKnown = typeof limiter === 'string' && service.has(limiter)
    const fields = {
      method: request.method,
      route: request.routeOptions.url,
      status,
      code,
      caller: request.caller?.name,
      ...(isRefused && { address: request.ip }),
      ...(isKnown && { limiter }),
      ...(key !== undefined && { key: redactKey(key, service.config) }),
      ...(status >= 500 && !(error instanceof ServiceError) && { err: error }),
    }
    if (level === 'info') log.info(fields, 'request failed')
    else {
      const kind = isRefused ? request.ip : status === 500 ? String(error).slice(0, MOST_KIND) : ''
      failures.failed(level, code, kind, fields)
    }
  }
}

function retryHeadersOf(error: unknown, { status }: ErrorBody): readonly { name: string; value: string }[] {
  if (error instanceof WaitError && error.decision !== undefined) return retryAfterHeaders(error.decision)
  if (status === 503) return [{ name: 'Retry-After', value: '1' }]
  if (status === 401) return [{ name: 'WWW-Authenticate', value: 'Bearer realm="slidegate"' }]
  return []
}

/** Responds to invalid or slow requests directly on the socket, and closes it. */
export function answerClientError(error: NodeJS.ErrnoException, socket: Socket): void {
  if (error.code === 'ECONNRESET' || !socket.writable) {
    socket.destroy()
    return
  }
  const [status, detail] =
    error.code === 'ERR_HTTP_REQUEST_TIMEOUT'
      ? [408, "the request didn't arrive in time"]
      : error.code === 'HPE_HEADER_OVERFLOW'
        ? [431, 'the headers are too long']
        : [400, 'malformed HTTP request']
  const body = JSON.stringify(bodyOf(status as number, 'invalid_request', detail as string))
  socket.end(
    `HTTP/1.1 ${status} ${STATUS_CODES[status as number]}\r\nContent-Type: ${PROBLEM_TYPE}\r\nContent-Length: ${Buffer.byteLength(body)}\r\nConnection: close\r\n\r\n${body}`,
  )
  // Otherwise, a client could keep the connection open forever.
  setTimeout(() => socket.destroy(), LINGER_MS).unref()
}

const COUNT_MS = 1000

/** How long a kind of failure must be absent before it's logged in full again. */
const FORGET_MS = 60_000

/** The maximum number of kinds of failures to distinguish. */
const MOST_KINDS = 64

/**
 * Logs the first failed request of each kind in full, and only counts the others.
 *
 * Counts are logged once per second. During an outage, a line for each failed request would fill the disk.
 */
export class FailureLog {
  readonly #log: Logger
  /** When each kind was last seen. */
  readonly #kinds = new Map<string, number>()
  #counts: Record<string, number> = {}
  #timer: NodeJS.Timeout | undefined

  constructor(log: Logger) {
    this.#log = log
  }

  /**
   * @param code the code in the response: failures are counted by code
   * @param kind distinguishes failures with the same code
   */
  failed(level: 'warn' | 'error', code: string, kind: string, fields: object): void {
    if (this.#isNew(`${code} ${kind}`)) {
      this.#log[level](fields, 'request failed')
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
    this.#log.warn({ requests: counts }, 'more requests failed')
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
