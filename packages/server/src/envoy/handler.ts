// Handles ShouldRateLimit calls, and maps errors to gRPC statuses.

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
  /** The number of calls in flight, which the handler updates. */
  readonly calls: { underWay: number }
}

export function handlerOf(options: HandlerOptions): handleUnaryCall<Call['request'], RateLimitResponse> {
  const { rateLimits, gatekeeper, log, maxInFlight, tracing, calls } = options
  const answer = (call: Call): Promise<RateLimitResponse | undefined> => {
    gatekeeper.mustBeEnvoy(call.metadata)
    const [authorization] = call.metadata.get('authorization')
    const caller = gatekeeper.admit(authorization?.toString())
    caller.must('check')
    const { request } = call
    if (request === MALFORMED) {
      throw new ServiceError(400, 'malformed', "the request isn't a valid RateLimitRequest")
    }
    const decide = () => rateLimits.shouldRateLimit(request, caller, () => isGone(call))
    return tracing === undefined ? decide() : tracing.within(traceHeadersOf(call), decide)
  }
  const fail = (callback: sendUnaryData<RateLimitResponse>, error: unknown): void => {
    const code = codeOf(error)
    if (code !== status.INTERNAL) {
      // A store error's message isn't sent, because it contains the address of Redis.
      const isOutage = error instanceof StoreUnavailableError
      callback({ code, details: isOutage ? errorBodyOf(error).detail : (error as Error).message })
      return
    }
    log.error({ err: error }, 'a ShouldRateLimit call failed')
    callback({ code, details: "internal error; see the service's log" })
  }
  return async (call, callback) => {
    if (calls.underWay >= maxInFlight) {
      fail(
        callback,
        new ServiceError(429, 'overload', `${maxInFlight} calls are already in flight; retry in a moment`),
      )
      return
    }
    calls.underWay++
    let response: RateLimitResponse | undefined
    try {
      response = await answer(call)
    } catch (error) {
      fail(callback, error)
      return
    } finally {
      calls.underWay--
    }
    if (response !== undefined) callback(null, response)
    // The client is gone and won't read this.
    else callback({ code: status.CANCELLED, details: 'the call ended before a decision was made' })
  }
}

/** The headers of Envoy's span, if Envoy sends traces. */
function traceHeadersOf({ metadata }: Call): TraceHeaders {
  const [traceparent] = metadata.get('traceparent')
  const [tracestate] = metadata.get('tracestate')
  return { traceparent: traceparent?.toString(), tracestate: tracestate?.toString() }
}

/** Whether the call was canceled or timed out. Such a call isn't charged. */
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
