// The public entry point slidegate/outbound.
export { type AnyFetch, limitedFetch } from './limited-fetch.ts'
export { type LimitedInterceptor, limitedInterceptor } from './limited-interceptor.ts'
export type { OutboundOptions, OutboundRequest, RetryOptions } from './options.ts'
export { type UpstreamLimit, type UpstreamLimiterOptions, upstreamLimiter } from './upstream-limiter.ts'
