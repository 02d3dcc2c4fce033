// The public API of the package.
export type { Decision, LimitDecision, Source } from './decision.ts'
export {
  SlidegateError,
  type SlidegateErrorCode,
  StoreUnavailableError,
  type StoreUnavailableReason,
  WaitError,
  type WaitErrorReason,
} from './errors.ts'
export type { LimiterEvent, LimiterEvents, LimiterListener, LimiterStats, Logger } from './events.ts'
export type { AnyKey, KeyOptions, Keys } from './key.ts'
export { tupleKey } from './key.ts'
export { createLimiter } from './limiter/create-limiter.ts'
export type { LimitsOption } from './limiter/dimensions.ts'
export type { BanExplanation, Explanation, LimitExplanation } from './limiter/explanation.ts'
export type {
  LimitChange,
  Override,
  OverrideChange,
  OverrideOptions,
  Overrides,
} from './limiter/overrides.ts'
export type { Permit } from './limiter/permit.ts'
export type { Reservation, Settlement } from './limiter/reservation.ts'
export { type SlidingCount, type SlidingCountOptions, slidingCount } from './limiter/sliding-count.ts'
export type { WaitingState } from './limiter/waiting/room.ts'
export type { WaitOptions } from './limiter/waiting/waiter.ts'
export type {
  BulkRequest,
  ConsumeOptions,
  DimensionOptions,
  ExplainOptions,
  LimitEntries,
  Limiter,
  LimiterOptions,
} from './limiter.ts'
export type { BanOptions } from './limits/ban.ts'
export { type ConcurrencyOptions, concurrency } from './limits/concurrency.ts'
export { type Declaration, declarationOf, limitOf, limitsOf } from './limits/declaration.ts'
export type { LimitOptions } from './limits/declare.ts'
export { type DistinctOptions, distinct } from './limits/distinct.ts'
export { type FixedWindowOptions, fixedWindow } from './limits/fixed-window.ts'
export type { Entry, Limit, LimitNumbers, ListedCharge } from './limits/limit.ts'
export { type SlidingCounterOptions, slidingCounter } from './limits/sliding-counter.ts'
export { type SlidingWindowOptions, slidingWindow } from './limits/sliding-window.ts'
export { type TokenBucketOptions, tokenBucket } from './limits/token-bucket.ts'
export { type DenyCacheOptions, withDenyCache } from './resilience/deny-cache.ts'
export { failurePolicy } from './resilience/failure-policy.ts'
export { type LeaseOptions, type LeasingStore, withLeases } from './resilience/leases/leases.ts'
export type { Clock } from './runtime/clock.ts'
export type { Duration } from './runtime/duration.ts'
export {
  type MemoryStore,
  type MemoryStoreOptions,
  memoryStore,
  type OnFull,
} from './stores/memory/memory.ts'
export type {
  BreakerOptions,
  Call,
  FailurePolicy,
  OnStoreError,
  Op,
  Outcome,
  Store,
  StoreConnection,
} from './stores/store.ts'
