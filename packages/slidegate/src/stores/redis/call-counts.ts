// Counts of a store's calls.

import { Histogram, type HistogramCounts } from '../../runtime/histogram.ts'

const MS = [0.1, 0.25, 0.5, 1, 2.5, 5, 10, 25, 50, 100, 250, 500, 1000, 2500]
const REQUESTS = [1, 2, 4, 8, 16, 32, 64, 128, 256, 512]
const OPS = [1, 2, 4, 8, 16, 32, 64, 128]

/** Counts of calls since the store was made. Never keys. */
export interface RedisStoreStats {
  /** Calls sent, with one request or many; of a Cluster, those to all its parts. */
  readonly calls: number
  /** Calls that have failed as a whole. One whose reply never comes has not. */
  readonly failedCalls: number
  /** How often the script was loaded. At the first call, and after a restart, a failover or `SCRIPT FLUSH`. */
  readonly scriptLoads: number
  /** Milliseconds until calls were answered, even if all of their requests had timed out. */
  readonly callMs: HistogramCounts
  /** Requests that have travelled in a call. */
  readonly requestsPerCall: HistogramCounts
  /** Ops per call. Equal requests for one key are one op. */
  readonly opsPerCall: HistogramCounts
}

/** Counts all but the script's loads. */
export class CallCounts {
  #calls = 0
  #failedCalls = 0
  readonly #callMs = new Histogram(MS)
  readonly #requests = new Histogram(REQUESTS)
  readonly #ops = new Histogram(OPS)

  sent(requests: number, ops: number): void {
    this.#calls++
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
    return {
      calls: this.#calls,
      failedCalls: this.#failedCalls,
      scriptLoads,
      callMs: this.#callMs.read(),
      requestsPerCall: this.#requests.read(),
      opsPerCall: this.#ops.read(),
    }
  }
}
