export { type AddressKeyOptions, addressKey, UNKNOWN_ADDRESS } from './address.ts'
export {
  apiKeyKey,
  emailKey,
  type RoutedRequest,
  routeKey,
  sessionKey,
  userKey,
} from './caller-keys.ts'
export {
  type AddressedRequest,
  type AddressHeader,
  type ClientAddressOptions,
  clientAddress,
} from './client-address.ts'
export { createGuard, type Denial, type Guard, type Verdict } from './guard.ts'
export {
  draft7Headers,
  draft11Headers,
  type Header,
  type HeaderGeneration,
  legacyHeaders,
  retryAfterHeaders,
} from './headers.ts'
export type { GuardOptions, HandlerArguments } from './options.ts'
export {
  PROBLEM_CONTENT_TYPE,
  type Problem,
  problemOf,
  type QuotaExceededProblem,
  type ReducedCapacityProblem,
} from './problem.ts'
export type { Trust } from './trust.ts'
