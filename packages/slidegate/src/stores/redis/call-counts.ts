// Counts a store's calls.

import { Histogram, type HistogramCounts } from '../../runtime/histogram.ts'

const MS = [0.1, 0.25, 0.5, 1, 2.5, 5, 10, 25, 50, 100, 250, 500, 1000, 2500]
const REQUESTS = [1, 2, 4, 8, 16, 32, 64, 128, 256, 512]
const OPS = [1, 2, 4, 8, 16, 32, 64, 128]

/** Counts of calls since the store was created. Contains no keys. */
export interface RedisStoreStats {
  /** Number of calls sent to Redis, each with one or more requests. On a Cluster, includes the calls to all servers. */
  readonly calls: number
  /** Calls that failed as a whole. A call whose reply never arrives isn't counted. */
  readonly failedCalls: number
  /**
   * How often the script was loaded. That happens on the first call, and after a restart, failover or `SCRIPT FLUSH`.
   */
  readonly scriptLoads: number
  /** Response times of calls in milliseconds. Includes calls whose requests had all timed out. */
  readonly callMs: HistogramCounts
  /** Requests per call. */
  readonly requestsPerCall: HistogramCounts
  /** Ops per call. Identical requests for one key are merged into one op. */
  readonly opsPerCall: HistogramCounts
}

export class CallCounts {
  #failedCalls = 0
  readonly #callMs = new Histogram(MS)
  readonly #requests = new Histogram(REQUESTS)
  readonly #ops = new Histogram(OPS)

  sent(requests: number, ops: number): void {
    this.#requests.observe(requests)
    this.#ops.observe(ops)
  }

  answered(ms: number): void {
    this.#callMs.observe(ms)
  }

  failed(): void {
    this.#failedCalls++
  }

  read(scriptLoads: number): RedisStoreStats {
    const requestsPerCall = this.#requests.read()
    return {
      calls: requestsPerCall.counts.reduce((sum, calls) => sum + calls, 0),
      failedCalls: this.#failedCalls,
      scriptLoads,
      callMs: this.#callMs.read(),
      requestsPerCall,
      opsPerCall: this.#ops.read(),
    }
  }
}
