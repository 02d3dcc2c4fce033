import type { SlidingWindowOptions } from '../../src/index.ts'
import { work } from '../support/work.ts'
import type { Admission } from './fullest-window.ts'

const WORKER = new URL('worker.js', import.meta.url)

/** A worker's task. */
export interface Order {
  readonly port: number
  /** The sliding windows of every key. */
  readonly limits: readonly SlidingWindowOptions[]
  /** Requests use this number of keys in turn, and costs from 1 to `costs`. */
  readonly keys: number
  readonly costs: number
  readonly durationMs: number
  /** Number of processes that start together. */
  readonly processes?: number
  /** The length of leases. No leases if left out. */
  readonly leaseMs?: number
  /** How long each caller pauses after every ten requests. No pause if left out. */
  readonly pauseMs?: number
}

export interface Report {
  /** When units were spent. Leased units use the machine's clock, others the store's. */
  admissions: (Admission & {
    readonly key: string
    readonly isLeased: boolean
  })[]
  denied: number
}

/** Starts worker processes on one Redis, and collects their decisions. */
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
