// Counts of a store's calls.

import { Histogram, type HistogramCounts } from '../../runtime/histogram.ts'

const MS = [0.1, 0.25, 0.5, 1, 2.5, 5, 10, 25, 50, 100, 250, 500, 1000, 2500]
const REQUESTS = [1, 2, 4, 8, 16, 32, 64, 128, 256, 512]
const OPS = [1, 2, 4, 8, 16, 32, 64, 128]

/** What a store has asked of Redis since it was made. Numbers, never keys. */
export interface RedisStoreStats {
  /** Calls sent, with one request or many; of a Cluster, those to all its parts. */
  readonly calls: number
  /** Calls that have failed as a whole. One whose reply never comes has not. */
  readonly failedCalls: number
  /** How often Redis did not know the script, and was sent it: at the first call, after a restart, a failover, `SCRIPT FLUSH`. */
  readonly scriptLoads: number
  /** Milliseconds until calls were answered, those included whose requests had been given up by then. */
  readonly callMs: HistogramCounts
  /** Requests that have travelled in a call. */
  readonly requestsPerCall: HistogramCounts
  /** What Redis had to decide in a call: equal requests for one key are one. */
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
