import assert from 'node:assert/strict'
import { Redis } from 'ioredis'
import { redisStore } from 'slidegate/redis'
import {
  type Cost,
  costOf,
  LOADS,
  type Load,
  type Subject,
  startCountingRedis,
} from '../../../packages/slidegate/test/support/instructions.ts'
import { SHAPES, type ShapeName } from '../../../packages/slidegate/test/support/shapes.ts'
import { type CommonScript, ONCE } from '../redis/scripts.ts'
import type { Figure, Scenario } from '../scenario.ts'

/** The maximum cost of a shape: thousands of instructions, or a multiple of another shape's. */
interface Bound {
  readonly shape: ShapeName
  readonly atMost: Readonly<Record<Load, number>>
  readonly against?: ShapeName | CommonScript
}

// Starting with "stream", bounds are measured values plus 3%.
const BOUNDS: readonly Bound[] = [
  bound('window, admitted', 102, 34),
  bound('window, denied', 82, 19),
  bound('three windows', 124, 44),
  bound('bucket', 104, 21),
  bound('fixed window', 99, 21),
  bound('window and bucket', 154, 59),
  bound('window and shadow window', 156, 66),
  bound('window with ban', 155, 62),
  bound('two keys', 162, 72),
  bound('window, overrides, none set', 102 + 6, 34 + 5),
  bound('window, overrides, one per key', 102 + 12, 34 + 10),
  bound('everything on', 330, 150),
  bound('zset', 1.2, 1.2, ONCE.log),
  bound('distinct', 1.2, 1.2, ONCE.values),
  bound('concurrency, acquire or release', 1, 1, 'zset'),
  bound('stream', 216, 121),
  bound('sliding counter', 105, 25.8),
  bound('calendar window', 110, 22.9),
  bound('zset, request id', 160, 59.5),
  bound('window, cost of 5', 125, 38),
  bound('window, refund', 240, 85),
  bound('window, peek', 116, 26.5),
]

function bound(shape: ShapeName, lone: number, batch: number, against?: Bound['against']): Bound {
  return { shape, atMost: { lone, batch }, against }
}

export const instructions: Scenario = {
  name: 'instructions',
  title: 'Redis instructions per decision, one request at a time and in batches of 64',
  // Repeated runs differ by up to 2%, so there is one round in both modes.
  async run() {
    const server = await startCountingRedis()
    const client = new Redis(server.url)
    const cost = async (subject: ShapeName | CommonScript, load: Load) =>
      costOf(server, await open(client, subject), load)
    const figures: Figure[] = []
    try {
      for (const bound of BOUNDS) {
        for (const load of LOADS) {
          const theirs = bound.against && (await cost(bound.against, load))
          figures.push(figureOf(bound, load, await cost(bound.shape, load), theirs))
        }
      }
    } finally {
      client.disconnect()
      await server.stop()
    }
    return figures
  },
}

async function open(client: Redis, subject: ShapeName | CommonScript): Promise<Subject> {
  if (typeof subject === 'string') return SHAPES[subject](redisStore(client))
  const { consume } = await subject.open(client, { limit: 10_000, windowMs: 60_000 })
  return { ask: async (key, n) => assert.equal((await consume(key, undefined, `value-${n}`))[0], 1) }
}

function figureOf({ shape, atMost, against }: Bound, load: Load, ours: Cost, theirs?: Cost): Figure {
  const other = typeof against === 'object' ? `the ${against.name}` : against
  const note = `decisions per call: ${ours.decisionsPerCall.toFixed(0)}`
  const raw = { thousands: [ours.thousands], 'decisions per call': [ours.decisionsPerCall] }
  const target = { atMost: atMost[load] }
  const name = `${shape}, ${load}`
  if (theirs === undefined) return { name, value: ours.thousands, unit: 'k instructions', target, note, raw }
  return {
    name: `${name}: vs. ${other}`,
    value: ours.thousands / theirs.thousands,
    unit: 'x',
    target,
    note: `${ours.thousands.toFixed(1)}k vs. ${theirs.thousands.toFixed(1)}k; ${note}`,
    raw: { ...raw, [`${other}: thousands`]: [theirs.thousands] },
  }
}
