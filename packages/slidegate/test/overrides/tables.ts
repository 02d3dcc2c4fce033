import { type Limit, memoryStore, slidingWindow } from '../../src/index.ts'
import {
  type OverrideOptions,
  OverrideTable,
  type OverrideTableOptions,
} from '../../src/overrides/overrides.ts'
import { outcomesOf } from '../../src/stores/call.ts'
import { redisStore } from '../../src/stores/redis/index.ts'
import type { Op, Outcome, Store } from '../../src/stores/store.ts'
import { ManualClock } from '../../src/testing.ts'

/** The time, of the store and of every process. */
export const clock = new ManualClock()

export const declared: readonly Limit[] = [slidingWindow({ limit: 10, window: '1m' })]
export const vip: readonly Limit[] = [
  slidingWindow({ limit: 1000, window: '1h', precision: 20, name: 'vip' }),
]
export const trial: readonly Limit[] = [
  slidingWindow({ limit: 3, window: '10s', precision: 5, name: 'trial' }),
]

/** The overrides of a limiter as one process knows them, and what it asks of its store. */
export interface Process {
  readonly table: OverrideTable
  readonly asked: Op['type'][]
  /** How many ops it waits for now, and the most that it ever has. */
  readonly waiting: { now: number; most: number }
  set(key: string, limits: readonly Limit[], options?: OverrideOptions): Promise<void>
  /** What it holds the key to, as soon as it may decide. */
  ask(key: string): Promise<readonly Limit[] | undefined>
}

export function processOn(store: Store, options: Partial<OverrideTableOptions> = {}): Process {
  const asked: Op['type'][] = []
  const waiting = { now: 0, most: 0 }
  const apply = async (op: Op): Promise<Outcome> => {
    asked.push(op.type)
    waiting.now++
    waiting.most = Math.max(waiting.most, waiting.now)
    try {
      return (await outcomesOf(store, [op]))[0]
    } finally {
      waiting.now--
    }
  }
  const { applySync } = store
  const table = new OverrideTable({
    limiter: 'api',
    apply,
    applySync: applySync && ((op) => applySync.call(store, [op])[0]),
    now: clock.now,
    ...options,
  })
  return {
    table,
    asked,
    waiting,
    set: (key, limits, term) => table.set(undefined, key, limits, term),
    ask: async (key) => {
      if (!table.isFresh()) await table.refresh()
      return table.of(undefined, key)
    },
  }
}

export const memory = (): Store => memoryStore({ clock: clock.now })
export const inRedis = (redis: Parameters<typeof redisStore>[0]): Store =>
  redisStore(redis, { clock: clock.now })

export const namesOf = (limits: readonly Limit[] | undefined): string[] | undefined =>
  limits?.map(({ name }) => name)
