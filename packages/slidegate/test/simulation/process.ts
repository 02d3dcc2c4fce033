import { failurePolicy, type Store, withDenyCache, withLeases } from '../../src/index.ts'
import { batchedStore } from '../../src/stores/redis/batcher.ts'
import { Backlog } from '../../src/stores/redis/queue.ts'
import type { Op, RefundOp } from '../../src/stores/store.ts'
import type { CallerRequest } from './caller-request.ts'
import { Link } from './link.ts'
import type { Composition, Definition, Policy, ProcessOptions } from './scenario.ts'
import { WatchedLimiter } from './watched-limiter.ts'
import type { World } from './world.ts'

const MOST = 16

type LeasingStore = ReturnType<typeof withLeases>

/** A simulated process: its connections, store wrappers and limiters. */
export class Process {
  readonly number: number
  readonly options: ProcessOptions
  readonly links: readonly Link[]
  readonly limiters: WatchedLimiter[] = []
  /** All limiters, including closed ones. */
  readonly allLimiters: WatchedLimiter[] = []
  /** Refunds that the library sent, on its own or for a caller. */
  readonly refunds: RefundOp[] = []
  readonly store: Store
  /** When each key was last reset in this process. */
  readonly resetAtMs = new Map<string, number>()
  readonly #world: World
  #leasing: LeasingStore | undefined

  constructor(world: World, number: number, options: ProcessOptions) {
    this.#world = world
    this.number = number
    this.options = options
    this.links = world.servers.map((server) => new Link(world, server, number, MOST, options.isOneConnection))
    this.store = this.#wrapped(this.#farStore(), options.composition)
  }

  addLimiter(definition: Definition, policy: Policy): void {
    const limiter = new WatchedLimiter(this.#world, this, definition, policy)
    this.limiters.push(limiter)
    this.allLimiters.push(limiter)
  }

  /** Closes a limiter and replaces it with another with the same limits. */
  closeLimiter(limiter: WatchedLimiter): void {
    limiter.close()
    this.limiters.splice(this.limiters.indexOf(limiter), 1)
    this.addLimiter(limiter.definition, limiter.policy)
  }

  /** Returns the request that sent this op. `undefined` if the library sent it on its own. */
  callerOf(op: Op): CallerRequest | undefined {
    for (const { callersOps } of this.allLimiters) {
      const request = callersOps.get(op)
      if (request !== undefined) return request
    }
    return undefined
  }

  async close(): Promise<void> {
    await this.#leasing?.close()
    for (const limiter of this.limiters) limiter.close()
  }

  #wrapped(store: Store, composition: Composition): Store {
    const { leaseMs, maxLeasedKeys, maxStaleMs, maxDeniedKeys } = this.options
    const leasing = (inner: Store) => {
      this.#leasing = withLeases(inner, { leaseMs, maxKeys: maxLeasedKeys })
      return this.#leasing
    }
    const denying = (inner: Store) => withDenyCache(inner, { maxStaleMs, maxKeys: maxDeniedKeys })
    switch (composition) {
      case 'plain':
        return store
      case 'leases':
        return leasing(store)
      case 'denyCache':
        return denying(store)
      case 'denyCache(leases)':
        return denying(leasing(store))
      case 'leases(denyCache)':
        return leasing(denying(store))
    }
  }

  /** Creates a store like the one for a Cluster: each server has its own batcher. */
  #farStore(): Store {
    const backlog = new Backlog(1, 1)
    // The options for one server, or for a Cluster.
    const options = { maxCalls: MOST, readsFirst: this.links.length > 1 }
    const shardOf = (op: Op): number => this.#world.shardOf(op.parts[0]!.key)
    const store = batchedStore(this.links, options, shardOf, undefined, backlog)
    return {
      shardOf,
      isOverloaded: store.isOverloaded,
      failurePolicy,
      apply: (ops, call) => {
        for (const op of ops) if (op.type === 'refund') this.refunds.push(op)
        store.apply(ops, call)
      },
      close() {},
    }
  }
}
