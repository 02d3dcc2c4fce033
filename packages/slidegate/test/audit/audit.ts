import { fork } from 'node:child_process'
import type { Admission } from './fullest-window.ts'

/** What a worker is to do. */
export interface Order {
  readonly port: number
  /** Whether that is one of a Cluster. */
  readonly isCluster?: boolean
  /** Sliding windows, all of which every key is held to. */
  readonly limits: readonly { readonly limit: number; readonly window: number }[]
  /** Requests are for so many keys in turn, and for costs from 1 to so many. */
  readonly keys: number
  readonly costs: number
  readonly durationMs: number
  /** Whether it takes leases, and of which length. */
  readonly leaseMs?: number
  /** How long each caller rests after every ten requests, if at all. */
  readonly pauseMs?: number
}

export interface Report {
  /** When units were spent: by the store's clock, or where they were leased, by the machine's. */
  admissions: (Admission & { readonly key: string; readonly isLeased: boolean })[]
  denied: number
}

/** Sets processes to work at once, all on one Redis, and gathers what they were told. */
export async function audit(orders: readonly Order[]): Promise<Report> {
  const reports = await Promise.all(orders.map(work))
  return {
    admissions: reports.flatMap(({ admissions }) => admissions),
    denied: reports.reduce((sum, { denied }) => sum + denied, 0),
  }
}

function work(order: Order): Promise<Report> {
  return new Promise((resolve, reject) => {
    const child = fork(new URL('worker.js', import.meta.url), { execArgv: [] })
    let report: Report | undefined
    child.once('message', (message: Report) => {
      report = message
    })
    child.once('error', reject)
    child.once('close', (code) => {
      if (code === 0 && report !== undefined) resolve(report)
      else reject(new Error(`a worker ended with code ${code}; has the package been built?`))
    })
    child.send(order)
  })
}
