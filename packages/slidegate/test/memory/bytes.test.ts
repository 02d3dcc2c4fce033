import { describe, expect, it } from 'vitest'
import {
  concurrency,
  distinct,
  fixedWindow,
  type Limit,
  type StoreUnavailableError,
  slidingWindow,
} from '../../src/index.ts'
import { banLog } from '../../src/limits/ban.ts'
import { type Log, limitSet, withLog, withOverrides } from '../../src/limits/limit-set.ts'
import { FOREVER } from '../../src/limits/override.ts'
import { KeyTable } from '../../src/stores/memory/key-table.ts'
import { MemoryOps } from '../../src/stores/memory/memory-ops.ts'
import type { Op } from '../../src/stores/store.ts'
import { bytesInUse } from '../faults/matrix/meter.ts'

// `maxKeys` only bounds the number of keys. In these floods, each key holds a lot of data.

const MAX_BYTES = 2 ** 21
const HOUR_MS = 3_600_000

interface Flood {
  readonly limits?: (i: number) => readonly Limit[]
  readonly addition?: Log
  readonly key?: (i: number) => string
  readonly op?: (i: number) => object
  readonly ops: number
  /** Minimum bytes that the flood takes, which proves that it would exceed the bound. */
  readonly least?: number
}

const floods: Readonly<Record<string, Flood>> = {
  'a limit set per key': {
    limits: (i) =>
      Array.from({ length: 8 }, (_, l) =>
        fixedWindow({ limit: 9, window: HOUR_MS + 100 * i + l, name: `${l}` }),
      ),
    ops: 2000,
  },
  'many logs': {
    limits: () => MANY,
    ops: 5000,
  },
  'one key with changing limits': {
    limits: (i) => [fixedWindow({ limit: 9, window: HOUR_MS + i })],
    key: () => 'ann',
    ops: 5000,
    least: 100_000,
  },
  'many records': { limits: () => SLIDING, key: (i) => `k${i % 50}`, ops: 300_000 },
  'many entries': {
    limits: () => HELD,
    key: (i) => `k${i % 50}`,
    op: (i) => ({ requestId: `request${i}` }),
    ops: 25_000,
  },
  'many values': {
    limits: () => VALUES,
    key: (i) => `k${i % 50}`,
    op: (i) => ({ requestId: `value${i}` }),
    ops: 25_000,
  },
  'many denials': {
    limits: () => ONE,
    addition: banLog({ after: 1000, within: HOUR_MS, for: HOUR_MS }),
    key: (i) => `k${i % 300}`,
    ops: 300_000,
  },
  overrides: {
    limits: () => ONE,
    op: (i) =>
      i % 2 ? {} : { type: 'override', rule: RULE, ruleMs: FOREVER, given: [`${i}`.padEnd(1000, 'x')] },
    ops: 4000,
  },
  'growing overrides': {
    limits: () => ONE,
    key: (i) => `k${i % 800}`,
    op: (i) => ({
      type: 'override',
      rule: RULE,
      ruleMs: FOREVER,
      ...(i >= 800 && { given: [`${i}`.padEnd(9000, 'x')] }),
    }),
    ops: 4000,
  },
}
const RULE = JSON.stringify({ minute: { limit: 5, windowMs: HOUR_MS } })
const MANY = Array.from({ length: 64 }, (_, i) =>
  fixedWindow({ limit: 9, window: HOUR_MS + i, name: `${i}` }),
)
const SLIDING = [slidingWindow({ limit: 20_000, window: HOUR_MS })]
const HELD = [concurrency({ limit: 10_000, ttl: HOUR_MS })]
const VALUES = [distinct({ limit: 10_000, window: HOUR_MS })]
const ONE = [slidingWindow({ limit: 1, window: HOUR_MS })]

describe('a flooded memory store stays within its byte limit', () => {
  it.each(Object.entries(floods))('by %s', (_, { limits, addition, key, op, ops, least = MAX_BYTES / 2 }) => {
    const table = new KeyTable(1_000_000, 0, MAX_BYTES)
    const store = new MemoryOps(table, 'deny')
    const sets = new Map<readonly Limit[], ReturnType<typeof limitSet>>()
    const setFor = (i: number) => {
      const own = limits!(i)
      let set = sets.get(own)
      if (set !== undefined) return set
      set = withOverrides(limitSet('api', own))
      if (addition !== undefined) set = withLog(set, addition)
      if (sets.size < 1) sets.set(own, set)
      return set
    }
    const before = bytesInUse()
    let most = 0
    for (let i = 0; i < ops; i++) {
      table.sweep(1 + i)
      const part = { key: key?.(i) ?? `key${i}`, set: setFor(i) }
      const usual = { type: 'consume', parts: [part], cost: 1, count: 1, leaseMs: 0 }
      try {
        store.apply({ ...usual, ...op?.(i) } as Op, 1 + i)
      } catch (error) {
        if ((error as Partial<StoreUnavailableError>).reason !== 'full') throw error
      }
      if (i % 100 === 0) most = Math.max(most, table.bytes)
    }
    sets.clear()
    expect(most).toBeGreaterThan(least)
    expect(most).toBeLessThan(1.5 * MAX_BYTES)
    expect(bytesInUse() - before).toBeLessThan(3 * MAX_BYTES)
    expect(table.size + table.overrides.size).toBeGreaterThan(0)
  })
})
