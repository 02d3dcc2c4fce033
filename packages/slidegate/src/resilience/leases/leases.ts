import type { Clock } from '../../runtime/clock.ts'
import type { Store } from '../../stores/store.ts'
import { checkInteger, checkWrapped } from '../options.ts'
import { Leases, MAX_LEASE_MS, MIN_LEASE_MS } from './lease-keys.ts'

/** For how long units are held, and of how many keys. */
export interface LeaseOptions {
  /**
   * Milliseconds, from 2 to 3,000, for which units are held at most; never more than a tenth of the shortest
   * window. While a key is leased its sliding windows are longer by that, for every process: the longer, the fewer
   * calls, and the less is admitted. Default: 100.
   */
  readonly leaseMs?: number
  /** Keys (or costs of a key) that are leased at a time at most, from 1 to 2^20. Default: 1000. */
  readonly maxKeys?: number
  /** A monotonic clock in milliseconds, for tests. Default: `performance.now`. */
  readonly clock?: Clock
}

/** A store that holds units: to be closed before its client is. */
export interface LeasingStore extends Store {
  /** Returns the units that are held; resolves when that is done, or has failed. What is asked after it is not leased. */
  close(): Promise<void>
}

/**
 * Takes units of hot keys for many requests at once, and spends them in this process: `source` is then `lease`,
 * `atMs` the instant at which they were charged, and `remaining` is as of then. No window is ever over its limit,
 * beside processes that do not lease either, since a unit is spent within `leaseMs` and every process counts it for so
 * much longer. What is not spent is returned. (After a reset in another process, or a step forward of the store's
 * clock, what is held is still spent, for `leaseMs` at most.)
 *
 * @throws {SlidegateError} `invalid_option`
 */
export function withLeases(store: Store, options: LeaseOptions = {}): LeasingStore {
  checkWrapped(store, options, 'withLeases', { leaseMs: true, maxKeys: true, clock: true })
  const { leaseMs = 100, maxKeys = 1000, clock = () => performance.now() } = options
  checkInteger('leaseMs', leaseMs, MIN_LEASE_MS, MAX_LEASE_MS)
  checkInteger('maxKeys', maxKeys, 1, 2 ** 20)
  const leases = new Leases(store, clock, leaseMs, maxKeys)

  return {
    apply: (ops, call) => leases.apply(ops, call),
    domainOf: store.domainOf?.bind(store),
    isCrowded: (op, sinceMs) => leases.isCrowded(op, sinceMs),
    connection: store.connection,
    async close() {
      await leases.close()
      await store.close()
    },
  }
}
