// The public entry point slidegate/http.
export {
  type AddressKeyOptions,
  addressKey,
  apiKeyKey,
  emailKey,
  type RoutedRequest,
  routeKey,
  sessionKey,
  UNKNOWN_ADDRESS,
  userKey,
} from './caller-keys.ts'
export {
  type AddressedRequest,
  type AddressHeader,
  type ClientAddressOptions,
  clientAddress,
} from './client-address.ts'
export {
  type DenialOptions,
  type DenialResponse,
  denialOf,
  type ForbiddenProblem,
  PROBLEM_CONTENT_TYPE,
  type Problem,
  problemOf,
  type QuotaExceededProblem,
  type ReducedCapacityProblem,
} from './denial-message.ts'
export type { DeniedPolicy } from './denied.ts'
export { type Binding, createGuard, type Denial, type Guard, type Verdict } from './guard.ts'
export {
  draft6Headers,
  draft7Headers,
  draft11Headers,
  exposedHeaders,
  type Header,
  type HeaderAccess,
  type HeaderFormat,
  type HeaderSet,
  type HeadersOption,
  legacyHeaders,
  placeHeaders,
  placeHeadersBefore,
  retryAfterHeaders,
} from './headers.ts'
export type { FinishedResponse, GuardOptions, HandlerArguments, RefundIf } from './options.ts'
export type { Trust } from './trust.ts'
