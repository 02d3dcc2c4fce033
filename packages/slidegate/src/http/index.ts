export { type AddressKeyOptions, addressKey, UNKNOWN_ADDRESS } from './address.ts'
export type { Answered, Binding, HandlerArguments } from './binding.ts'
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
export { type DenialAnswer, type DenialOptions, denialOf } from './denial-body.ts'
export type { DeniedPolicy } from './denied.ts'
export { createGuard, type Denial, type Guard, type Verdict } from './guard.ts'
export {
  draft6Headers,
  draft7Headers,
  draft11Headers,
  exposedHeaders,
  type Header,
  type HeaderAccess,
  type HeaderGeneration,
  type HeaderGenerations,
  type HeaderSet,
  legacyHeaders,
  placeHeaders,
  placeHeadersBefore,
  retryAfterHeaders,
} from './headers.ts'
export type { GuardOptions } from './options.ts'
export {
  type ForbiddenProblem,
  PROBLEM_CONTENT_TYPE,
  type Problem,
  problemOf,
  type QuotaExceededProblem,
  type ReducedCapacityProblem,
} from './problem.ts'
export type { RefundIf } from './settling.ts'
export type { Trust } from './trust.ts'
