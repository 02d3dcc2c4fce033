import assert from 'node:assert/strict'
import { isDeepStrictEqual } from 'node:util'
import type { Redis } from 'ioredis'
import { memoryStore } from '../../src/index.ts'
import { redisStore } from '../../src/stores/redis/index.ts'
import type { ManualClock } from '../../src/testing/index.ts'
import type { Limiters, Step } from './alphabet.ts'
import { Stage } from './stage.ts'
import { histories, type Told } from './tree.ts'

function assertSame(actual: unknown, wanted: unknown, { steps }: Told): void {
  // Much faster than asserting it each time.
  if (isDeepStrictEqual(actual, wanted)) return
  assert.deepEqual(actual, wanted, `differs from the oracle: ${JSON.stringify(steps.map(spelt))}`)
}

function spelt({ key, event }: Step): string {
  return event.type === 'wait' ? `${event.ms} ms` : `${'ab'[key]} ${JSON.stringify(event)}`
}

/** On a store with room for what is held at a time, and no more: it is made anew now and then. */
const HISTORIES_ON_A_STORE = 5000

export async function playInMemory(
  limiters: Limiters,
  alphabet: readonly Step[],
  depth: number,
): Promise<number> {
  let played = 0
  let stage: Stage | undefined
  for (const told of histories(limiters, alphabet, depth)) {
    if (played % HISTORIES_ON_A_STORE === 0) {
      stage?.close()
      stage = new Stage(limiters, (clock) => memoryStore({ clock: clock.now }))
    }
    played++
    assertSame(await stage!.last(told), told.results.at(-1), told)
  }
  stage?.close()
  return played
}

export async function playOnRedis(
  redis: Redis,
  limiters: Limiters,
  alphabet: readonly Step[],
  depth: number,
): Promise<number> {
  // What is shorter is the beginning of another.
  const told = [...histories(limiters, alphabet, depth)].filter(({ steps }) => steps.length === depth)
  await redis.flushall()
  const storeOf = (clock: ManualClock) => redisStore(redis, { clock: clock.now })
  const stage = new Stage(limiters, storeOf)
  const answers = await stage.all(told)
  told.forEach((each, i) => {
    assertSame(answers[i], each.results, each)
  })
  stage.close()
  return told.length
}
