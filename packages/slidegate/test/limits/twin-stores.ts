import { randomUUID } from 'node:crypto'
import type { Redis } from 'ioredis'
import { expect } from 'vitest'
import { type MemoryStore, memoryStore } from '../../src/index.ts'
import type { LimitSet } from '../../src/limits/limit-set.ts'
import { outcomesOf } from '../../src/stores/call.ts'
import { redisStore } from '../../src/stores/redis/index.ts'
import type { ConsumeOp, ConsumeOutcome, ExplainOutcome, Op, Outcome, Store } from '../../src/stores/store.ts'
import { ManualClock } from '../../src/testing/index.ts'

/** A memory store and a Redis store, which must answer the same ops alike. */
export class TwinStores {
  readonly clock: ManualClock = new ManualClock()
  /** Prefix of its keys in Redis. */
  readonly prefix: string = `slidegate:${randomUUID()}`
  readonly redis: Store
  readonly memory: MemoryStore

  constructor(client: Redis) {
    this.redis = redisStore(client, { clock: this.clock.now, prefix: this.prefix })
    this.memory = memoryStore({ clock: this.clock.now })
  }

  async ask(op: Op): Promise<Outcome> {
    const [inMemory] = await outcomesOf(this.memory, [op])
    const [inRedis] = await outcomesOf(this.redis, [op])
    expect(inRedis, JSON.stringify(op)).toEqual(inMemory)
    return inRedis
  }

  async consume(set: LimitSet, options: Partial<ConsumeOp> = {}, key = 'k'): Promise<ConsumeOutcome> {
    const op = { type: 'consume', parts: [{ key, set }], cost: 1, count: 1, leaseMs: 0, ...options } as const
    return (await this.ask(op)) as ConsumeOutcome
  }

  async peek(set: LimitSet, cost = 1, key = 'k'): Promise<ConsumeOutcome> {
    return (await this.ask({ type: 'peek', parts: [{ key, set }], cost, count: 1 })) as ConsumeOutcome
  }

  async explain(set: LimitSet, cost = 1, key = 'k'): Promise<ExplainOutcome> {
    return (await this.ask({ type: 'explain', parts: [{ key, set }], cost, count: 1 })) as ExplainOutcome
  }

  async unblock(set: LimitSet, key = 'k'): Promise<void> {
    await this.ask({ type: 'override', parts: [{ key, set }], blockMs: 0 })
  }
}
