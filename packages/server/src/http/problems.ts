import type { FastifyError } from 'fastify'
import { SlidegateError, StoreUnavailableError, WaitError } from 'slidegate'
import { ServiceError } from '../service/service-error.ts'
import type { App } from './app.ts'
import type { Context } from './context.ts'

/** A problem of RFC 9457. */
export interface ErrorBody {
  readonly title: string
  readonly status: number
  readonly code: string
  readonly detail: string
}

/** What a caller is told of an error; of those that are none of his, nothing but that. */
export function errorBodyOf(error: unknown): ErrorBody {
  if (error instanceof ServiceError) {
    return { title: titleOf(error.status), status: error.status, code: error.code, detail: error.message }
  }
  if (error instanceof StoreUnavailableError) {
    return { title: 'Store unavailable', status: 503, code: `store_${error.reason}`, detail: error.message }
  }
  if (error instanceof WaitError) {
    return { title: 'Not admitted', status: 429, code: `wait_${error.reason}`, detail: error.message }
  }
  if (error instanceof SlidegateError) {
    const status = error.code === 'closed' ? 503 : 400
    return { title: titleOf(status), status, code: error.code, detail: error.message }
  }
  const { statusCode, code, message } = error as Partial<FastifyError>
  if (statusCode !== undefined && statusCode >= 400 && statusCode < 500) {
    return {
      title: titleOf(statusCode),
      status: statusCode,
      code: (code ?? 'bad_request').toLowerCase().replace(/^fst_err_/, ''),
      detail: message ?? '',
    }
  }
  return { title: titleOf(500), status: 500, code: 'internal', detail: 'it is in the log of the service' }
}

export function answerErrors(app: App, { log }: Context): void {
  app.setErrorHandler((error, request, reply) => {
    const body = errorBodyOf(error)
    if (body.status === 500)
      log.error({ err: error, route: request.routeOptions.url }, 'a request has failed')
    return reply.code(body.status).type('application/problem+json').send(body)
  })
  app.setNotFoundHandler((_request, reply) => {
    const body = { title: titleOf(404), status: 404, code: 'not_found', detail: 'there is no such route' }
    return reply.code(404).type('application/problem+json').send(body)
  })
}

const TITLES: Readonly<Record<number, string>> = {
  400: 'Bad request',
  401: 'Unauthorized',
  403: 'Forbidden',
  404: 'Not found',
  413: 'Content too large',
  415: 'Unsupported media type',
  429: 'Too many requests',
  500: 'Internal error',
  503: 'Unavailable',
}

function titleOf(status: number): string {
  return TITLES[status] ?? 'Error'
}
