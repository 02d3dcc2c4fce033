import type { Limiter } from '../limiter.ts'
import { LimitedCall } from './limited-call.ts'
import { type OutboundOptions, outboundSettings } from './options.ts'
import type { CallHandler, CallOptions } from './undici.ts'

/** What `dispatcher.compose()` of undici 7 and later takes. */
export type LimitedInterceptor = <Options, Handler>(
  dispatch: (options: Options, handler: Handler) => boolean,
) => (options: Options, handler: Handler) => boolean

/**
 * The same as `limitedFetch` for a dispatcher of undici: `agent.compose(limitedInterceptor(limiter))`. Interceptors that
 * send again on their own, such as `redirect()` and `retry()`, come after it in `compose`: then each of their requests waits
 * for a slot.
 *
 * @throws {SlidegateError} `invalid_option`
 */
export function limitedInterceptor(limiter: Limiter, options?: OutboundOptions): LimitedInterceptor {
  const settings = outboundSettings(limiter, options)
  return (dispatch) => (callOptions, handler) => {
    const call = new LimitedCall(
      settings,
      callOptions as CallOptions,
      handler as CallHandler,
      dispatch as unknown as (options: CallOptions, handler: CallHandler) => boolean,
    )
    void call.start()
    return true
  }
}
