// tier: integration
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { fixedWindow, type Limit, slidingCounter, slidingWindow } from '../../src/index.ts'
import type { Store } from '../../src/stores/store.ts'
import { useRedis } from '../support/use-redis.ts'
import { clock, declared, inRedis, memory, namesOf, processOn } from './tables.ts'

// Whatever is set and deleted, and by whom: what is in force.

const { redis } = await useRedis()

const CHOICES: readonly (readonly Limit[])[] = [
  declared,
  [slidingWindow({ limit: 5, window: '10s', precision: 5, name: 'short' })],
  [fixedWindow({ limit: 50, window: '5m', name: 'long' })],
  [
    slidingWindow({ limit: 2, window: '1s', name: 'second' }),
    slidingCounter({ limit: 9, window: '1m', name: 'minute' }),
  ],
]

type Step =
  | { readonly do: 'set'; readonly by: number; readonly choice: number; readonly ttl: number | undefined }
  | { readonly do: 'delete'; readonly by: number }
  | { readonly do: 'wait'; readonly ms: number }

const by = fc.nat({ max: 1 })
const step: fc.Arbitrary<Step> = fc.oneof(
  fc.record({
    do: fc.constant('set' as const),
    by,
    choice: fc.nat({ max: CHOICES.length - 1 }),
    ttl: fc.constantFrom(undefined, undefined, 500, 20_000, 120_000),
  }),
  fc.record({ do: fc.constant('delete' as const), by }),
  fc.record({ do: fc.constant('wait' as const), ms: fc.constantFrom(1, 400, 1001, 15_000, 100_000) }),
)

/** What is in force, by the clock alone. */
class Truth {
  #inForce: { readonly limits: readonly Limit[]; readonly untilMs: number } | undefined

  set(limits: readonly Limit[] | undefined, ttlMs: number | undefined): void {
    const untilMs = ttlMs === undefined ? Number.POSITIVE_INFINITY : clock.now() + ttlMs
    this.#inForce = limits && { limits, untilMs }
  }

  look(): readonly Limit[] | undefined {
    return this.#inForce && clock.now() < this.#inForce.untilMs ? this.#inForce.limits : undefined
  }
}

async function play(store: Store, steps: readonly Step[]): Promise<void> {
  const processes = [processOn(store), processOn(store)]
  const truth = new Truth()
  for (const each of steps) {
    if (each.do === 'wait') clock.advance(each.ms)
    if (each.do === 'set') {
      await processes[each.by]!.set('k', CHOICES[each.choice]!, { ttl: each.ttl })
      truth.set(CHOICES[each.choice], each.ttl)
    }
    if (each.do === 'delete') {
      const wasThere = truth.look() !== undefined
      expect(await processes[each.by]!.table.delete(undefined, 'k')).toBe(wasThere)
      truth.set(undefined, undefined)
    }
    const expected = truth.look()
    const fresh = processOn(store)
    // Any process that has just read knows the same as the one that has written.
    for (const process of [...processes, fresh]) {
      await process.table.list()
      expect(namesOf(await process.ask('k'))).toEqual(namesOf(expected))
    }
  }
}

describe.each<[string, () => Store]>([
  ['memory', memory],
  ['redis', () => inRedis(redis)],
])('overrides in %s', (_, open) => {
  it('follow what was set', async () => {
    const run = async (steps: readonly Step[]) => {
      await redis.flushall()
      await play(open(), steps)
    }
    await fc.assert(fc.asyncProperty(fc.array(step, { minLength: 1, maxLength: 12 }), run), { numRuns: 60 })
  })
})
