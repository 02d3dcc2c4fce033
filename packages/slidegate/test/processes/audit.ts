import type { SlidingWindowOptions } from '../../src/index.ts'
import { work } from '../support/work.ts'
import type { Admission } from './fullest-window.ts'

const WORKER = new URL('worker.js', import.meta.url)

/** What a worker is to do. */
export interface Order {
  readonly port: number
  /** The sliding windows that every key is held to. */
  readonly limits: readonly SlidingWindowOptions[]
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
    readonly key: string
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
