import fc from 'fast-check'
import type { Redis } from 'ioredis'

// Ways to damage a stored value: flipped or lost bytes, data of other programs or versions, and values under the
// wrong key.

/** A stored value and its dump. */
export interface Stored {
  readonly key: string
  readonly type: string
  readonly dump: Buffer
}

/** The damage to one key. All values are random, and each form of damage uses some of them. */
export interface Damage {
  readonly how: number
  readonly at: number
  readonly more: number
  readonly number: string
  readonly text: string
  readonly bytes: Uint8Array
}

const NUMBERS = [
  ...[
    '0',
    '-1',
    '1',
    '255',
    '256',
    '65536',
    '1e3',
    '1.5',
    '-0.5',
    '99999999999',
    '281474976710655',
    '281474976710656',
  ],
  ...[
    '140737488355328',
    '4503599627370496',
    '9007199254740991',
    '9007199254740993',
    '18446744073709551615',
    '1e300',
  ],
  ...[
    '9'.repeat(400),
    'inf',
    '-inf',
    'nan',
    '0x10',
    '',
    ' ',
    '1700000000000',
    '1699999999999.5',
    '1700000001001',
  ],
]

export const damages: fc.Arbitrary<Damage> = fc.record({
  how: fc.nat(),
  at: fc.nat(),
  more: fc.nat(),
  number: fc.oneof(
    fc.constantFrom(...NUMBERS),
    fc.double({ noNaN: true }).map(String),
    fc.nat(2_000_000).map((ms) => `${1_700_000_000_000 - ms}`),
  ),
  text: fc.oneof(
    fc.constantFrom('id', 'cost', 'total', '', ' ', 'x y', '{"limits":[]}', '\0', 'é', 'x'.repeat(9000)),
    fc.string(),
  ),
  bytes: fc.uint8Array({ minLength: 1, maxLength: 60 }),
})

type Harm = (redis: Redis, key: string, damage: Damage, value: Buffer) => unknown

/** Damage to strings. Most strings have a header and records of two-, six- and seven-byte numbers. */
const OF_STRINGS: readonly Harm[] = [
  (redis, key, { at, more }, value) => {
    const changed = Buffer.from(value)
    changed[at % changed.length]! ^= 1 << (more % 8)
    return redis.set(key, changed)
  },
  // Damages bytes near the start, which matter more.
  (redis, key, { at, bytes }, value) => {
    const changed = Buffer.from(value)
    changed[at % Math.min(changed.length, 52)] = bytes[0]!
    return redis.set(key, changed)
  },
  (redis, key, { at, more }, value) => {
    const changed = Buffer.from(value)
    const first = at % changed.length
    const length = [1, 2, 6, 6, 7][more % 5]!
    changed.subarray(first, first + length).fill([0, 0xff, 0x7f, 0x80][at % 4]!)
    return redis.set(key, changed)
  },
  (redis, key, { at }, value) => redis.set(key, value.subarray(0, at % value.length)),
  (redis, key, { at }, value) => redis.set(key, value.subarray(at % value.length)),
  (redis, key, { bytes }, value) => redis.set(key, Buffer.concat([value, bytes])),
  (redis, key, { at }, value) => redis.set(key, Buffer.concat([value, value.subarray(at % value.length)])),
  (redis, key, { at, bytes }, value) => {
    const changed = Buffer.from(value)
    changed.set(bytes.subarray(0, changed.length - (at % changed.length)), at % changed.length)
    return redis.set(key, changed)
  },
  (redis, key, { at, more }, value) => redis.setrange(key, value.length + (more % 200_000), String(at)),
  (redis, key, { bytes }) => redis.set(key, Buffer.from([1, ...bytes])),
]

const OF_SORTED_SETS: readonly Harm[] = [
  async (redis, key, { at, number }) => {
    const members = await redis.zrange(key, 0, -1)
    return redis.zadd(key, number, members[at % members.length] ?? 'x')
  },
  (redis, key, { number, text }) => redis.zadd(key, number, text),
  (redis, key, { at, more }) => redis.zremrangebyrank(key, at % 5, (at % 5) + (more % 5)),
  (redis, key, { number, bytes }) =>
    redis.zadd(key, ...Array.from(bytes).flatMap((byte) => [number, `${byte} ${byte}`])),
]

const OF_STREAMS: readonly Harm[] = [
  (redis, key, { number, text }) => redis.xadd(key, '*', 'id', text, 'cost', number, 'total', number),
  (redis, key, { at, number, text }) =>
    redis.xadd(key, `${1_700_000_000_000 + (at % 5000)}-*`, 'id', text, 'cost', '1', 'total', number),
  (redis, key, { text, number }) => redis.xadd(key, '1700000000999-*', text, number),
  async (redis, key, { at }) => {
    const entries = await redis.xrange(key, '-', '+')
    return redis.xdel(key, entries[at % entries.length]?.[0] ?? '0-1')
  },
  (redis, key) => redis.call('XSETID', key, '18446744073709551615-18446744073709551614'),
  (redis, key) => redis.xtrim(key, 'MAXLEN', 0),
]

const OF_HASHES: readonly Harm[] = [
  // The head: format, version, floor, count of the last changes, end and changes.
  async (redis, key, { at, number }) => {
    const words = ((await redis.hget(key, '')) ?? '').split(' ')
    words[at % words.length] = number
    return redis.hset(key, '', words.join(' '))
  },
  async (redis, key, { at, more, number }) => {
    const fields = (await redis.hkeys(key)).sort()
    const field = fields[at % fields.length]!
    const words = ((await redis.hget(key, field)) ?? '').split(' ')
    words[more % 2] = number
    return redis.hset(key, field, words.join(' '))
  },
  async (redis, key, { at, more, text }) => {
    const fields = (await redis.hkeys(key)).sort()
    const field = fields[at % fields.length]!
    const value = (await redis.hget(key, field)) ?? ''
    const place = more % (value.length + 1)
    return redis.hset(key, field, value.slice(0, place) + text + value.slice(place + text.length))
  },
  (redis, key, { number, text }) => redis.hset(key, text, `${number} ${number} ${text}`),
  async (redis, key, { at }) => {
    const fields = (await redis.hkeys(key)).sort()
    return redis.hdel(key, fields[at % fields.length]!)
  },
]

const FOREIGN: readonly Harm[] = [
  (redis, key) => redis.rpush(key, 'x'),
  (redis, key) => redis.hset(key, 'x', 'y', '', 'z'),
  (redis, key) => redis.sadd(key, 'x'),
  (redis, key, { number }) => redis.zadd(key, Number.isFinite(Number(number)) ? number : 1, 'x'),
  (redis, key, { number, text }) => redis.xadd(key, '*', text, number),
  (redis, key, { number }) => redis.set(key, number),
  (redis, key, { text }) => redis.set(key, text),
  (redis, key, { bytes }) => redis.set(key, Buffer.alloc(64, bytes[0])),
  (redis, key) => redis.setbit(key, 8 * 2_000_000, 1),
]

const OF_TYPES: Readonly<Record<string, readonly Harm[]>> = {
  string: OF_STRINGS,
  zset: OF_SORTED_SETS,
  stream: OF_STREAMS,
  hash: OF_HASHES,
}

/** Damages a value, or replaces it with a foreign one or with another key's. */
export async function harm(
  redis: Redis,
  { key }: Stored,
  damage: Damage,
  others: readonly Stored[],
): Promise<void> {
  const { how, at, more } = damage
  const harms = how % 10 < 6 ? OF_TYPES[await redis.type(key)] : undefined
  if (how % 10 > 7) {
    await redis.restore(key, 0, others[at % others.length]!.dump, 'REPLACE')
  } else if (harms === undefined) {
    await redis.del(key)
    await tried(() => FOREIGN[at % FOREIGN.length]!(redis, key, damage, Buffer.alloc(0)))
  } else {
    const value = harms === OF_STRINGS ? await redis.getBuffer(key) : null
    await tried(() => harms[more % harms.length]!(redis, key, damage, value ?? Buffer.alloc(1)))
  }
  if (more % 7 === 0) await redis.persist(key)
}

/** Ignores changes that Redis rejects, such as invalid ids. */
async function tried(change: () => unknown): Promise<void> {
  try {
    await change()
  } catch (error) {
    if (!(error instanceof Error) || !/^(ERR|WRONGTYPE) /.test(error.message)) throw error
  }
}

export async function dumpAll(redis: Redis): Promise<Stored[]> {
  const keys = (await redis.keys('*')).sort()
  return Promise.all(
    keys.map(async (key) => ({ key, type: await redis.type(key), dump: (await redis.dumpBuffer(key))! })),
  )
}

export async function restoreAll(redis: Redis, all: readonly Stored[]): Promise<void> {
  await redis.flushall()
  const pipeline = redis.pipeline()
  for (const { key, dump } of all) pipeline.restore(key, 3_600_000, dump)
  await pipeline.exec()
}
