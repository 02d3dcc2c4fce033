import { failurePolicy, type Store, withDenyCache, withLeases } from '../../src/index.ts'
import { batchedStore } from '../../src/stores/redis/batcher.ts'
import { Backlog } from '../../src/stores/redis/queue.ts'
import type { Op, RefundOp } from '../../src/stores/store.ts'
import type { Asked } from './asked.ts'
import { Link } from './link.ts'
import type { Composition, Definition, Policy, ProcessOptions } from './scenario.ts'
import { WatchedLimiter } from './watched-limiter.ts'
import type { World } from './world.ts'

const MOST = 16

type LeasingStore = ReturnType<typeof withLeases>

/** A process: its ways to the servers, its wrappers, its limiters. */
export class Process {
  readonly number: number
  readonly options: ProcessOptions
  readonly links: readonly Link[]
  readonly limiters: WatchedLimiter[] = []
  /** Those that were closed, too. */
  readonly allLimiters: WatchedLimiter[] = []
  /** Refunds that the library has asked for, on its own or for a caller. */
  readonly refunds: RefundOp[] = []
  readonly store: Store
  /** When a key was last reset here. */
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

  /** Another with the same limits takes its place. */
  closeLimiter(limiter: WatchedLimiter): void {
    limiter.close()
    this.limiters.splice(this.limiters.indexOf(limiter), 1)
    this.addLimiter(limiter.definition, limiter.policy)
  }

  /** Who has asked for it; nobody where the library has, on its own. */
  callerOf(op: Op): Asked | undefined {
    for (const { callersOps } of this.allLimiters) {
      const asked = callersOps.get(op)
      if (asked !== undefined) return asked
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

  /** As the store on a Cluster: what lives on each server has a batcher of its own. */
  #farStore(): Store {
    const backlog = new Backlog(1, 1)
    // As on one server, and as on a Cluster.
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
