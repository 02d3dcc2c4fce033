export type { Clock } from './clock.ts'
export type { Decision, LimitDecision, Source } from './decision.ts'
export type { Duration } from './duration.ts'
export {
  SlidegateError,
  type SlidegateErrorCode,
  StoreUnavailableError,
  type StoreUnavailableReason,
} from './errors.ts'
export type { LimiterEvent, LimiterEvents, LimiterListener, Logger } from './events.ts'
export type { BanExplanation, Explanation, LimitExplanation } from './explanation.ts'
export { tupleKey } from './key.ts'
export type { AnyKey, Keys, LimitsOf } from './key-limits.ts'
export {
  type BulkRequest,
  type ConsumeOptions,
  createLimiter,
  type DimensionOptions,
  type ExplainOptions,
  type KeyOptions,
  type LimitEntries,
  type Limiter,
  type LimiterOptions,
} from './limiter.ts'
export type { BanOptions } from './limits/ban.ts'
export { type ConcurrencyOptions, concurrency } from './limits/concurrency.ts'
export { type Declaration, declarationOf, limitOf } from './limits/declaration.ts'
export type { LimitOptions } from './limits/declare.ts'
export { type DistinctOptions, distinct } from './limits/distinct.ts'
export { type FixedWindowOptions, fixedWindow } from './limits/fixed-window.ts'
export type { Charged, Entry, Limit } from './limits/limit.ts'
export type { LimitNumbers } from './limits/override.ts'
export { type SlidingCounterOptions, slidingCounter } from './limits/sliding-counter.ts'
export { type SlidingWindowOptions, slidingWindow } from './limits/sliding-window.ts'
export { type TokenBucketOptions, tokenBucket } from './limits/token-bucket.ts'
export type { LimitChange, Override, OverrideChange, OverrideOptions, Overrides } from './overrides.ts'
export type { Permit } from './permit.ts'
export type { Reservation, Settlement } from './reservation.ts'
export type { OnStoreError } from './resilience/answers.ts'
export type { BreakerOptions } from './resilience/breaker.ts'
export { type DenyCacheOptions, withDenyCache } from './resilience/deny-cache.ts'
export { type LeaseOptions, type LeasingStore, withLeases } from './resilience/leases.ts'
export { type SlidingCount, type SlidingCountOptions, slidingCount } from './sliding-count.ts'
export type { Call } from './stores/call.ts'
export { type MemoryStore, type MemoryStoreOptions, memoryStore, type OnFull } from './stores/memory.ts'
export type { Op, Outcome, Store, StoreConnection } from './stores/store.ts'
export type { LimiterStats } from './tally.ts'
export { WaitError, type WaitErrorReason } from './waiting/wait-error.ts'
export type { WaitOptions } from './waiting/wait-options.ts'
export type { WaitingState } from './waiting/waiting.ts'
