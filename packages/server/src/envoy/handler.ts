// Answers calls of ShouldRateLimit, with a gRPC status.

import { type handleUnaryCall, type ServerUnaryCall, type sendUnaryData, status } from '@grpc/grpc-js'
import type { Logger } from 'pino'
import { SlidegateError, StoreUnavailableError } from 'slidegate'
import { errorBodyOf } from '../http/problems.ts'
import type { Gatekeeper } from '../service/gatekeeper.ts'
import { ServiceError } from '../service/service-error.ts'
import type { TraceHeaders, Tracing } from '../tracing/tracing.ts'
import { MALFORMED, type RateLimitRequest, type RateLimitResponse } from './protocol.ts'
import type { RateLimits } from './rate-limits.ts'

type Call = ServerUnaryCall<RateLimitRequest | typeof MALFORMED, RateLimitResponse>

interface HandlerOptions {
  readonly rateLimits: RateLimits
  readonly gatekeeper: Gatekeeper
  readonly log: Logger
  readonly maxInFlight: number
  readonly tracing: Tracing | undefined
  /** Is told how many are under way. */
  readonly calls: { underWay: number }
}

/** Answers ShouldRateLimit. */
export function handlerOf(options: HandlerOptions): handleUnaryCall<Call['request'], RateLimitResponse> {
  const { rateLimits, gatekeeper, log, maxInFlight, tracing, calls } = options
  const answer = (call: Call): Promise<RateLimitResponse | undefined> => {
    gatekeeper.mustBeEnvoy(call.metadata)
    const [authorization] = call.metadata.get('authorization')
    const caller = gatekeeper.admit(authorization?.toString())
    caller.must('check')
    const { request } = call
    if (request === MALFORMED) {
      throw new ServiceError(400, 'malformed', 'the request is no RateLimitRequest')
    }
    const decide = () => rateLimits.shouldRateLimit(request, caller, () => isGone(call))
    return tracing === undefined ? decide() : tracing.within(traceHeadersOf(call), decide)
  }
  const refuse = (callback: sendUnaryData<RateLimitResponse>, error: unknown): void => {
    const code = codeOf(error)
    if (code !== status.INTERNAL) {
      // The message of a store's error has the address of Redis.
      const isOutage = error instanceof StoreUnavailableError
      callback({ code, details: isOutage ? errorBodyOf(error).detail : (error as Error).message })
      return
    }
    log.error({ err: error }, 'a call of ShouldRateLimit has failed')
    callback({ code, details: 'it is in the log of the service' })
  }
  return async (call, callback) => {
    if (calls.underWay >= maxInFlight) {
      refuse(callback, new ServiceError(429, 'overload', `${maxInFlight} calls are under way already`))
      return
    }
    calls.underWay++
    let response: RateLimitResponse | undefined
    try {
      response = await answer(call)
    } catch (error) {
      refuse(callback, error)
      return
    } finally {
      calls.underWay--
    }
    if (response !== undefined) callback(null, response)
    // Nobody reads it.
    else callback({ code: status.CANCELLED, details: 'the call was over before it was decided' })
  }
}

/** As Envoy sends them where it traces. */
function traceHeadersOf({ metadata }: Call): TraceHeaders {
  const [traceparent] = metadata.get('traceparent')
  const [tracestate] = metadata.get('tracestate')
  return { traceparent: traceparent?.toString(), tracestate: tracestate?.toString() }
}

/** What was given up before it was decided is charged nowhere. */
function isGone(call: Call): boolean {
  return call.cancelled || Number(call.getDeadline()) <= Date.now()
}

const CODES: Readonly<Record<number, status>> = {
  400: status.INVALID_ARGUMENT,
  401: status.UNAUTHENTICATED,
  403: status.PERMISSION_DENIED,
  404: status.NOT_FOUND,
  429: status.RESOURCE_EXHAUSTED,
  503: status.UNAVAILABLE,
}

function codeOf(error: unknown): status {
  if (error instanceof ServiceError) return CODES[error.status] ?? status.INTERNAL
  if (error instanceof StoreUnavailableError) return status.UNAVAILABLE
  if (error instanceof SlidegateError)
    return error.code === 'closed' ? status.UNAVAILABLE : status.INVALID_ARGUMENT
  return status.INTERNAL
}
