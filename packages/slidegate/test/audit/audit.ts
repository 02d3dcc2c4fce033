import type {
  ConcurrencyOptions,
  DistinctOptions,
  FixedWindowOptions,
  SlidingCounterOptions,
  SlidingWindowOptions,
  TokenBucketOptions,
} from '../../src/index.ts'
import { work } from '../support/work.ts'
import type { Admission } from './fullest-window.ts'

const WORKER = new URL('worker.js', import.meta.url)

/** A limit, as the options that make it. */
export type LimitOrder =
  | ({ readonly kind?: 'slidingWindow' } & SlidingWindowOptions)
  | ({ readonly kind: 'fixedWindow' } & FixedWindowOptions)
  | ({ readonly kind: 'slidingCounter' } & SlidingCounterOptions)
  | ({ readonly kind: 'tokenBucket' } & TokenBucketOptions)
  | ({ readonly kind: 'concurrency' } & ConcurrencyOptions)
  | ({ readonly kind: 'distinct' } & DistinctOptions)

/** The keys of a dimension, and what each is held to. */
interface DimensionOrder {
  readonly limits: readonly LimitOrder[]
  readonly keys: number
}

/** The key that tells workers so. */
export const ENOUGH = 'slidegate:enough'

/** The key that holds the limits of now, where they change. */
export const LIMITS = 'slidegate:limits'

/** What a worker is to do. */
export interface Order {
  readonly port: number
  /** Whether that is one of a Cluster. */
  readonly isCluster?: boolean
  /** What every key is held to, as the options of each kind. Default of the kind: `slidingWindow`. */
  readonly limits: readonly LimitOrder[]
  /** In place of `limits` and `keys`: each request is for one key of each, the first keys far more often than the last. */
  readonly dimensions?: Readonly<Record<string, DimensionOrder>>
  /** Requests are for so many keys in turn, and for costs from 1 to so many. */
  readonly keys: number
  readonly costs: number
  readonly durationMs: number | 'until told'
  /** How many processes begin together. */
  readonly processes?: number
  /** Whether it takes leases, and of which length. */
  readonly leaseMs?: number
  /** Whether its keys may have overrides. */
  readonly overrides?: boolean
  /** Whether limits are read again from {@link LIMITS} while requests are made. */
  readonly isReloading?: boolean
  /** How long each caller rests after every ten requests, if at all. */
  readonly pauseMs?: number
  /** Values that requests bring, each one of so many. */
  readonly values?: number
  /** What is admitted is held for so long, and released. */
  readonly holdMs?: number
}

export interface Report {
  /** When units were spent: by the store's clock, or where they were leased, by the machine's. */
  admissions: (Admission & {
    /** Where there are dimensions: of the first. */
    readonly key: string
    /** The key of each dimension, and when it was charged by the clock of where that lives. */
    readonly charges?: Readonly<Record<string, { readonly key: string; readonly atMs: number }>>
    readonly isLeased: boolean
    /** The first limit that it was held to, where limits change. */
    readonly limit?: number
    readonly windowMs?: number
    readonly value?: string
    /** When what was held was about to be released, by the machine's clock. */
    readonly releasedAtMs?: number
  })[]
  denied: number
}

/** Sets processes to work at once, all on one Redis, and gathers what they were told. */
export async function audit(orders: readonly Order[]): Promise<Report> {
  const processes = orders.length
  const reports = await Promise.all(
    orders.map((order) => work<Order, Report>(WORKER, { ...order, processes })),
  )
  return {
    admissions: reports.flatMap(({ admissions }) => admissions),
    denied: reports.reduce((sum, { denied }) => sum + denied, 0),
  }
}
