import fc from 'fast-check'
import { calendarWindow } from '../../src/calendar.ts'
import {
  concurrency,
  createLimiter,
  distinct,
  memoryStore,
  slidingCount,
  slidingCounter,
  slidingWindow,
  tokenBucket,
} from '../../src/index.ts'
import { served } from './served.ts'

/** A limiter name that the senders of these bodies aren't authorized for. */
export const VICTIM = 'victim'

/** Returns bodies as the library sends them, with every op and every kind. */
export async function sentBodies(): Promise<unknown[]> {
  await using service = await served(memoryStore())
  const common = { store: service.connect(), timeoutMs: 30_000, logger: false } as const
  const plain = createLimiter({
    ...{ ...common, name: 'mine', overrides: true, ban: { after: 3, within: '1m', for: ['1m', '1h'] } },
    limits: [
      slidingWindow({ limit: 3, window: '1m' }),
      slidingWindow({ limit: 1, window: '1h', shadow: true, name: 'tried' }),
      calendarWindow({ limit: 9, unit: 'day', timeZone: 'Europe/Berlin' }),
      tokenBucket({ capacity: 9, refill: 1, interval: '1s' }),
      slidingCounter({ limit: 9, window: '1m' }),
    ],
  })
  const kept = createLimiter({
    ...{ ...common, name: 'mine.kept' },
    dimensions: {
      user: [concurrency({ limit: 2, ttl: '1m' }), slidingWindow({ limit: 5, window: '1m', log: 'zset' })],
      device: [concurrency({ limit: 5, ttl: '1m' })],
    },
  })
  const seen = createLimiter({
    ...{ ...common, name: 'mine.seen' },
    limits: [distinct({ limit: 5, window: '1m' })],
  })
  const both = { user: 'ann', device: 'one' }
  const decision = await plain.consume('ann')
  await plain.refund('ann', decision)
  await plain.peek('ann')
  await plain.explain('ann')
  await plain.explain('ann', { charges: true })
  await plain.charge('ann', 2)
  await (await plain.reserve('ann', 1)).settle(2)
  await plain.block('ann', '1m')
  await plain.unblock('ann')
  await plain.reset('ann')
  await plain.overrides.set('ann', { tried: { limit: 5, window: '2h' } }, { ttl: '1h' })
  await plain.overrides.set('A n n', 'exempt')
  await plain.overrides.set('ann', 'block')
  await plain.consume('ann')
  await plain.overrides.get('ann')
  for await (const _ of plain.overrides.list()) await plain.isBlocked('ann')
  await plain.overrides.delete('ann')
  await plain.reset('ann')
  await plain.wait('bob')
  await plain.charge('bob', 3)
  const gone = new AbortController()
  const waits = plain.wait('bob', { signal: gone.signal }).catch(() => {})
  await plain.peek('bob')
  gone.abort()
  await waits
  const permit = await kept.acquire(both)
  await permit.extend()
  await permit.release()
  await kept.consume(both, { requestId: 'r' })
  await seen.consume('ann', { value: 'phone' })
  await kept.list(both)
  const count = slidingCount({ ...common, name: 'mine.count', period: '1m' })
  await count.add('ann')
  await Promise.all(Array.from({ length: 4 }, (_, i) => plain.consume(`k${i % 2}`)))
  for (const each of [plain, kept, seen, count]) each.close()
  return service.bodies.map((body) => JSON.parse(body))
}

const NASTY: readonly unknown[] = [
  ...[null, true, false, 0, -1, 1, 2, 0.5, 1e300, 2 ** 53, 2 ** 53 - 1, -(2 ** 53), 2 ** 31, 2 ** 40, 1e-9],
  ...[
    '',
    ' ',
    '0',
    '~',
    '~!',
    '*',
    '{}',
    '\0',
    '\uD800',
    'a'.repeat(200),
    'a\nb',
    '__proto__',
    'constructor',
  ],
  ...['victim', 'victim/user', 'mine/user', 'mine/', '/user', 'slidegate.readiness', '1m', '~overrides'],
  ...['consume', 'reset', 'override', 'overrides', 'settle', 'list', 'slidingWindow', 'Europe/Nowhere'],
  ...[
    'exempt',
    '{"tried":{"limit":1}}',
    '{"":{"limit":9,"windowMs":10}}',
    '{"tried":{}}',
    '{ "tried": {} }',
    '{',
  ],
  ...[[], {}, [[]], [null], Array.from({ length: 2000 }, () => 0)],
]

const nasty = fc.oneof(
  { weight: 6, arbitrary: fc.constantFrom(...NASTY) },
  { weight: 1, arbitrary: fc.jsonValue({ maxDepth: 3 }) },
  { weight: 1, arbitrary: fc.integer() },
)

type Path = readonly (string | number)[]

function pathsIn(value: unknown, path: Path = []): Path[] {
  if (typeof value !== 'object' || value === null) return [path]
  // The indexes of an array are strings, which works as well.
  return [path, ...Object.entries(value).flatMap(([key, inner]) => pathsIn(inner, [...path, key]))]
}

/** Generates a body in which something was changed, added, deleted or moved. */
export function damagedBody(bodies: readonly unknown[]): fc.Arbitrary<unknown> {
  const change = fc.record({
    where: fc.nat(),
    how: fc.constantFrom('replace', 'replace', 'replace', 'delete', 'add', 'move'),
    what: nasty,
    from: fc.nat(),
  })
  return fc
    .tuple(fc.constantFrom(...bodies), fc.array(change, { minLength: 1, maxLength: 3 }))
    .map(([body, changes]) => {
      let damaged = structuredClone(body)
      for (const { where, how, what, from } of changes) {
        const paths = pathsIn(damaged)
        const path = paths[where % paths.length]!
        const last = path.at(-1)
        const holder = path.slice(0, -1).reduce<unknown>((value, key) => (value as never)[key], damaged)
        const moved = paths[from % paths.length]!.reduce<unknown>(
          (value, key) => (value as never)[key],
          damaged,
        )
        const value = structuredClone(how === 'move' ? moved : what)
        if (last === undefined) damaged = value
        else if (how === 'delete') delete (holder as Record<string, unknown>)[last]
        else if (how === 'add')
          (holder as Record<string, unknown>)[typeof what === 'string' ? what : 'more'] = value
        else (holder as Record<string, unknown>)[last] = value
      }
      return damaged
    })
}
