import type { SlidingWindowOptions } from '../../src/index.ts'
import { work } from '../support/work.ts'
import type { Admission } from './fullest-window.ts'

const WORKER = new URL('worker.js', import.meta.url)

/** The keys of a dimension, and what each is held to. */
interface DimensionOrder {
  readonly limits: readonly SlidingWindowOptions[]
  readonly keys: number
}

/** What a worker is to do. */
export interface Order {
  readonly port: number
  /** Whether that is one of a Cluster. */
  readonly isCluster?: boolean
  /** The sliding windows that every key is held to. */
  readonly limits: readonly SlidingWindowOptions[]
  /** In place of `limits` and `keys`: each request is for one key of each, the first keys far more often than the last. */
  readonly dimensions?: Readonly<Record<string, DimensionOrder>>
  /** Requests are for so many keys in turn, and for costs from 1 to so many. */
  readonly keys: number
  readonly costs: number
  readonly durationMs: number
  /** How many processes begin together. */
  readonly processes?: number
  /** Whether it takes leases, and of which length. */
  readonly leaseMs?: number
  /** How long each caller rests after every ten requests, if at all. */
  readonly pauseMs?: number
}

export interface Report {
  /** When units were spent: by the store's clock, or where they were leased, by the machine's. */
  admissions: (Admission & {
    /** Where there are dimensions: of the first. */
    readonly key: string
    /** The key of each dimension, and when it was charged by the clock of where that lives. */
    readonly charges?: Readonly<Record<string, { readonly key: string; readonly atMs: number }>>
    readonly isLeased: boolean
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
