// tier: integration
import fc from 'fast-check'
import { beforeEach, describe, expect, it } from 'vitest'
import { memoryStore } from '../../src/index.ts'
import type { Note, Noted, Notes } from '../../src/limits/limit.ts'
import { limitSet, withLog } from '../../src/limits/limit-set.ts'
import { MAX_NOTES, notesLog } from '../../src/limits/notes.ts'
import { outcomesOf } from '../../src/stores/call.ts'
import { redisStore } from '../../src/stores/redis/index.ts'
import type { NoteOp, Op, Outcome, Part, Store } from '../../src/stores/store.ts'
import { ManualClock } from '../../src/testing.ts'
import { useRedis } from '../support/use-redis.ts'

// A table is no limit, so no limiter asks these ops of it: here they are, of both twins.

const { redis } = await useRedis()
beforeEach(() => redis.flushall())

const partsOf = (limiter = 'l'): [Part] => [
  { key: '~overrides', set: withLog(limitSet(limiter, []), notesLog) },
]
const parts = partsOf()

const noteOp = (name: string, text: string | undefined, ttlMs = 0): NoteOp => ({
  type: 'note',
  parts,
  name,
  text,
  ttlMs,
})

async function ask(store: Store, op: Op): Promise<Outcome> {
  return (await outcomesOf(store, [op]))[0]
}
const write = async (store: Store, name: string, text: string | undefined, ttlMs = 0) => {
  const op = noteOp(name, text, ttlMs)
  let noted = (await ask(store, op)) as Noted
  while (noted.next !== undefined) noted = (await ask(store, { ...op, from: noted.next })) as Noted
  return noted.noted
}
const read = async (store: Store, since = 0) => whole(await pagesOf(store, since))
const live = ({ notes }: Notes) => notes.filter(({ text }) => text !== undefined)

async function pagesOf(store: Store, since = 0): Promise<Notes[]> {
  const pages: Notes[] = []
  let asked: Notes['next'] = { since }
  while (asked !== undefined) {
    pages.push((await ask(store, { type: 'notes', parts, ...asked })) as Notes)
    asked = pages.at(-1)!.next
  }
  return pages
}

/** What pages tell, where nothing is written between them. */
function whole(pages: readonly Notes[]): Notes {
  const { next, ...last } = pages.at(-1)!
  const notes = new Map(pages.flatMap((page) => page.notes.map((note) => [note.name, note])))
  return { ...last, notes: Array.from(notes.values()).toSorted((a, b) => (a.name < b.name ? -1 : 1)) }
}

async function fill(store: Store, count: number, text = 'text', ttlMs: (i: number) => number = () => 0) {
  for (let first = 0; first < count; first += 1000) {
    const ops = Array.from({ length: Math.min(1000, count - first) }, (_, i) =>
      noteOp(`n${first + i}`, text, ttlMs(first + i)),
    )
    await outcomesOf(store, ops)
  }
}

/**
 * Microseconds that each call of a script took that was made meanwhile, in their order: the least of several times, since
 * Redis may have to wait for the processor.
 */
async function microsOf(act: () => Promise<unknown>): Promise<number[]> {
  const times: number[][] = []
  await redis.config('SET', 'slowlog-log-slower-than', '0', 'slowlog-max-len', '1000')
  while (times.length < 5) {
    await redis.slowlog('RESET')
    await act()
    const log = (await redis.slowlog('GET', '1000')) as [number, number, number, string[]][]
    const calls = log.filter(([, , , words]) => words[0]!.toLowerCase() === 'evalsha')
    times.push(calls.map(([, , micros]) => micros).toReversed())
  }
  await redis.config('SET', 'slowlog-log-slower-than', '10000')
  const [first = []] = times
  expect(times.map(({ length }) => length)).toEqual(times.map(() => first.length))
  return first.map((_, i) => Math.min(...times.map((each) => each[i]!)))
}

const clock = new ManualClock()
const stores: Record<string, () => Store> = {
  memory: () => memoryStore({ clock: clock.now }),
  redis: () => redisStore(redis, { clock: clock.now }),
}
const tableKey = async () => (await redis.keys('*~overrides:n'))[0]!

describe.each(Object.keys(stores))('a table in %s', (name) => {
  const open = () => stores[name]!()

  it('tells what was written since a version, and nothing where that is the last', async () => {
    const store = open()
    expect(await read(store)).toEqual({ version: 0, isAll: false, notes: [] })
    await write(store, 'a', 'one')
    const first = await read(store)
    expect(first).toMatchObject({ isAll: true, notes: [{ name: 'a', text: 'one', ttlMs: 0, ageMs: 0 }] })
    expect(await read(store, first.version)).toEqual({ version: first.version, isAll: false, notes: [] })
    clock.advance(5)
    await write(store, 'b', '{"two": "zwei\\n", "x": "\u0000é😀"}')
    const second = await read(store, first.version)
    expect(second.isAll).toBe(false)
    expect(second.notes).toEqual([
      { name: 'b', text: '{"two": "zwei\\n", "x": "\u0000é😀"}', ttlMs: 0, ageMs: 0 },
    ])
    clock.advance(7)
    expect((await read(store)).notes.map(({ ageMs }) => ageMs)).toEqual([12, 7])
  })

  it('tells what has been removed', async () => {
    const store = open()
    await write(store, 'a', 'one')
    await write(store, 'b', 'two')
    const { version } = await read(store)
    await write(store, 'a', undefined)
    expect(await read(store, version)).toMatchObject({
      isAll: false,
      notes: [{ name: 'a', ttlMs: 0, ageMs: 0 }],
    })
    const after = await read(store)
    await write(store, 'nobody', undefined)
    expect(await read(store, after.version)).toMatchObject({ version: after.version, notes: [] })
  })

  it('tells all to who knows more than there is, as after a failover', async () => {
    const store = open()
    await write(store, 'a', 'one')
    expect(await read(store, 2 ** 46)).toMatchObject({ isAll: true, notes: [{ name: 'a' }] })
  })

  it('tells all to who has missed more than the last 256 changes', async () => {
    const store = open()
    await write(store, 'a', 'one')
    const { version } = await read(store)
    for (let i = 0; i < 256; i++) await write(store, `n${i % 7}`, `text ${i}`)
    const last = await read(store, version)
    expect(last.isAll).toBe(false)
    expect(last.notes).toHaveLength(7)
    expect(last.notes[3]).toMatchObject({ name: 'n3', text: 'text 255' })
    await write(store, 'a', undefined)
    expect(await read(store, version)).toMatchObject({ isAll: true, notes: last.notes })
    expect((await read(store, last.version)).notes).toEqual([{ name: 'a', ttlMs: 0, ageMs: 0 }])
  })

  it('never gives a version twice, though all notes be removed in the same millisecond', async () => {
    const store = open()
    await write(store, 'a', 'one')
    const { version } = await read(store)
    await write(store, 'a', undefined)
    await write(store, 'b', 'two')
    expect((await read(store, version)).notes).toEqual([
      { name: 'a', ttlMs: 0, ageMs: 0 },
      { name: 'b', text: 'two', ttlMs: 0, ageMs: 0 },
    ])
  })

  it('lets notes expire by the clock of the store', async () => {
    const store = open()
    const { version } = await read(store)
    await write(store, 'a', 'one', 100)
    clock.advance(99)
    expect((await read(store, version)).notes).toEqual([{ name: 'a', text: 'one', ttlMs: 1, ageMs: 99 }])
    await write(store, 'b', 'two')
    clock.advance(1)
    expect(await read(store)).toMatchObject({
      notes: [{ name: 'a', ttlMs: 0, ageMs: 0 }, { name: 'b' }],
      size: 2,
    })
    expect(live(await read(store)).map((note) => note.name)).toEqual(['b'])
  })

  it('says of changed notes that they are gone meanwhile', async () => {
    const store = open()
    await write(store, 'a', 'one')
    const { version } = await read(store)
    await write(store, 'a', 'two', 50)
    clock.advance(50)
    expect((await read(store, version)).notes).toEqual([{ name: 'a', ttlMs: 0, ageMs: 0 }])
  })

  it(`holds ${MAX_NOTES} notes; where they are more, those that have expired make room`, async () => {
    const store = open()
    await fill(store, MAX_NOTES, 'text', (i) => (i < 6000 ? 1000 : 0))
    const { version } = await read(store)
    expect(await write(store, 'more', 'text')).toBe(false)
    expect((await read(store, version)).version).toBe(version)
    expect(await write(store, 'n7', 'other', 1000)).toBe(true)
    clock.advance(1000)
    expect(await write(store, 'more', 'text')).toBe(true)
    const all = await read(store, version)
    expect(all.isAll).toBe(true)
    expect(live(all)).toHaveLength(4001)
  })

  it('of which few have expired: they are found', async () => {
    const store = open()
    await fill(store, MAX_NOTES, 'text', (i) => (i === 4711 ? 1000 : 0))
    expect(await write(store, 'more', 'text')).toBe(false)
    clock.advance(1000)
    expect(await write(store, 'more', 'text')).toBe(true)
    expect(await write(store, 'one more', 'text')).toBe(false)
    expect(live(await read(store))).toHaveLength(MAX_NOTES)
  })

  it('tells all to who knows of one that was lost, though it has been written to since', async () => {
    const store = open()
    await write(store, 'a', 'one')
    const { version } = await read(store)
    const next = store.applySync === undefined ? store : open()
    await redis.flushall()
    clock.advance(1)
    await write(next, 'b', 'two')
    expect(await read(next, version)).toMatchObject({ isAll: true, notes: [{ name: 'b' }] })
  })

  it('is not written by who does not know what others have written since', async () => {
    const store = open()
    const since = async (name: string, text: string | undefined, version: number) =>
      (await ask(store, { ...noteOp(name, text), since: version })) as Noted
    expect(await since('a', 'one', 0)).toEqual({ noted: true })
    expect(await since('a', 'two', 0)).toEqual({ noted: false, isStale: true })
    const { version } = await read(store)
    clock.advance(5)
    await write(store, 'b', 'one')
    expect(await since('a', 'two', version)).toEqual({ noted: true })
    expect(await since('b', 'two', version)).toEqual({ noted: false, isStale: true })
    expect(await since('b', undefined, version)).toEqual({ noted: false, isStale: true })
    // No version of this table: it may be one of a history that was lost.
    expect(await since('c', 'one', version + 1)).toEqual({ noted: false, isStale: true })
    expect(await since('c', 'one', 2 ** 46)).toEqual({ noted: false, isStale: true })
    expect((await read(store)).notes.map(({ text }) => text)).toEqual(['two', 'one'])
  })

  it('tells all to who knows a version that it never had', async () => {
    const store = open()
    await write(store, 'a', 'one')
    const { version } = await read(store)
    clock.advance(5)
    await write(store, 'b', 'two')
    expect((await read(store, version)).isAll).toBe(false)
    expect((await read(store, version + 1)).isAll).toBe(true)
  })

  it('is the same whatever is written and read', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(step, { maxLength: 40 }), (steps) => play(open(), steps)),
      {
        numRuns: 30,
      },
    )
  })
})

type Step =
  | {
      readonly do: 'write'
      readonly name: number
      readonly text: string | undefined
      readonly ttlMs: number
      readonly back: number | undefined
    }
  | { readonly do: 'read'; readonly back: number }
  | { readonly do: 'wait'; readonly ms: number }

const step: fc.Arbitrary<Step> = fc.oneof(
  fc.record({
    do: fc.constant('write' as const),
    name: fc.nat({ max: 3 }),
    text: fc.option(fc.string({ minLength: 1, unit: 'binary' }), { nil: undefined, freq: 3 }),
    ttlMs: fc.constantFrom(0, 0, 10, 1000),
    back: fc.option(fc.nat({ max: 4 }), { nil: undefined }),
  }),
  fc.record({ do: fc.constant('read' as const), back: fc.nat({ max: 4 }) }),
  fc.record({ do: fc.constant('wait' as const), ms: fc.constantFrom(1, 9, 10, 700, -5, -2000) }),
)

/** What a reader knows who reads now and then is what one knows who reads all. */
async function play(store: Store, steps: readonly Step[]): Promise<void> {
  await redis.flushall()
  const known = new Map<string, Note>()
  let version = 0
  let latestMs = clock.now()
  for (const each of steps) {
    if (each.do === 'wait') clock.advance(each.ms)
    latestMs = Math.max(latestMs, clock.now())
    if (each.do === 'write') await write(store, `n${each.name}`, each.text, each.ttlMs)
    if (each.do !== 'read') continue
    const news = await read(store, version)
    if (news.isAll) known.clear()
    for (const note of news.notes) {
      if (note.text === undefined) known.delete(note.name)
      else known.set(note.name, note)
    }
    version = news.version
    const all = live(await read(store))
    for (const { name, text, ttlMs } of all) {
      // Where the clock was set back, one that had expired counts again; who was told that it is gone forgets it.
      if (ttlMs > 0 && clock.now() + ttlMs <= latestMs && !known.has(name)) continue
      expect(known.get(name)?.text).toBe(text)
    }
    // What is known besides has had a ttl that has passed.
    for (const [name, note] of known) {
      if (!all.some((live) => live.name === name)) expect(note.ttlMs).toBeGreaterThan(0)
    }
  }
}

it('both twins answer the same, to the last number', async () => {
  const same = async (steps: readonly Step[]) => {
    await redis.flushall()
    const [memory, inRedis] = [stores.memory!(), stores.redis!()]
    const versions = [0, 1]
    for (const each of steps) {
      if (each.do === 'wait') clock.advance(each.ms)
      const knownAt = (back: number) => versions.at(-1 - (back % versions.length))!
      const op: Op | undefined =
        each.do === 'write'
          ? {
              ...noteOp(`n${each.name}`, each.text, each.ttlMs),
              since: each.back === undefined ? undefined : knownAt(each.back),
            }
          : each.do === 'read'
            ? { type: 'notes', parts, since: knownAt(each.back) }
            : undefined
      if (op === undefined) continue
      const [ours, theirs] = [await ask(memory, op), await ask(inRedis, op)]
      if (op.type === 'note') expect(theirs).toEqual(ours)
      else {
        expect(whole([theirs as Notes])).toEqual(whole([ours as Notes]))
        versions.push((ours as Notes).version)
      }
    }
  }
  await fc.assert(fc.asyncProperty(fc.array(step, { maxLength: 60 }), same), { numRuns: 100 })
})

describe('in Redis', () => {
  const store = stores.redis!()

  it('a hash without a TTL while a note never expires, else with that of the last', async () => {
    await write(store, 'a', 'one', 3_600_000)
    const [least, most] = [3_599_000, 3_600_000 * 1.25]
    const ttl = async () => redis.pttl(await tableKey())
    expect(await ttl()).toBeGreaterThan(least)
    expect(await ttl()).toBeLessThanOrEqual(most)
    await write(store, 'b', 'two')
    expect(await ttl()).toBe(-1)
    await write(store, 'a', 'one', 60_000)
    expect(await ttl()).toBe(-1)
    await write(store, 'b', 'two', 60_000)
    expect(await ttl()).toBeGreaterThan(least)
    await write(store, 'b', 'two')
    await write(store, 'b', undefined)
    await write(store, 'a', undefined)
    expect(await ttl()).toBeGreaterThan(0)
    expect(await redis.hkeys(await tableKey())).toEqual(['', ' 0', ' 1', ' 2', ' 3', ' 4', ' 5', ' 6'])
  })

  it('asks for one field where nothing was changed', async () => {
    for (let i = 0; i < 50; i++) await write(store, `n${i}`, 'text')
    const { version } = await read(store)
    const calls = async () => {
      const stats = await redis.info('commandstats')
      return ['hget', 'hscan'].map((name) =>
        Number(/calls=(\d+)/.exec(stats.split(`cmdstat_${name}:`)[1] ?? '')?.[1] ?? 0),
      )
    }
    const [before, allBefore] = await calls()
    for (let i = 0; i < 10; i++) await read(store, version)
    const [after, allAfter] = await calls()
    expect(after! - before!).toBe(10)
    expect(allAfter).toBe(allBefore)
  })

  it.each([
    ['a value of another type', async (key: string) => redis.set(key, 'text')],
    ['another format', async (key: string) => redis.hset(key, '', '2 5 5 5 5 5')],
    ['a hash of others', async (key: string) => redis.hset(key, 'x', 'y')],
  ])('refuses %s, and leaves it', async (_, damage) => {
    await write(store, 'a', 'one')
    const key = await tableKey()
    await redis.del(key)
    await damage(key)
    const dump = await redis.dumpBuffer(key)
    await expect(read(store)).rejects.toMatchObject({ code: 'store_unavailable', reason: 'state' })
    await expect(write(store, 'b', 'two')).rejects.toMatchObject({ reason: 'state' })
    expect(await redis.dumpBuffer(key)).toEqual(dump)
  })

  const calls = async (command: string) => {
    const stats = await redis.info('commandstats')
    const [, count = 0] = /calls=(\d+)/.exec(stats.split(`cmdstat_${command}:`)[1] ?? '') ?? []
    return Number(count)
  }

  it('tells a damaged note as one, and all others', async () => {
    for (let i = 0; i < 40; i++) await write(store, `n${i}`, `text ${'x'.repeat(70)}`)
    const key = await tableKey()
    const { version } = await read(store)
    await write(store, 'n7', 'text')
    await redis.hset(key, 'n7', 'text without times', 'n8', '')
    const damaged = (name: string) => ({ name, ttlMs: 0, ageMs: 0, isDamaged: true })
    expect((await read(store, version)).notes).toEqual([damaged('n7')])
    const all = await read(store)
    expect(all.notes.filter(({ isDamaged }) => isDamaged)).toEqual([damaged('n7'), damaged('n8')])
    expect(live(all)).toHaveLength(38)
    await write(store, 'n8', 'repaired')
    await write(store, 'n7', undefined)
    expect(live(await read(store))).toHaveLength(39)
    // Whoever is told of them is told of the last changes, too.
    expect(await read(store, version)).toMatchObject({
      isAll: false,
      notes: [{ name: 'n7' }, { name: 'n8' }],
    })
  })

  it.each([
    ['damaged', (key: string) => redis.hset(key, ' 3', 'x')],
    ['lost', (key: string) => redis.hdel(key, ' 3')],
  ])('tells all where a change is %s, and writes on', async (_, damage) => {
    for (let i = 0; i < 10; i++) await write(store, `n${i}`, 'text')
    const { version } = await read(store)
    await damage(await tableKey())
    await write(store, 'more', 'text')
    expect(await read(store, version)).toMatchObject({ isAll: true })
    for (let i = 0; i < 256; i++) await write(store, `n${i % 5}`, 'text')
    expect(live(await read(store, version))).toHaveLength(11)
    const last = await read(store)
    await write(store, 'last', 'text')
    expect(await read(store, last.version)).toMatchObject({ isAll: false, notes: [{ name: 'last' }] })
  })

  it('tells many changes, and long notes, in pages', async () => {
    await write(store, 'a', 'one')
    const { version } = await read(store)
    for (let i = 0; i < 100; i++) await write(store, `n${i % 60}`, `${i} ${'x'.repeat(8000)}`)
    for (const pages of [await pagesOf(store, version), await pagesOf(store)]) {
      expect(pages.length).toBeGreaterThan(4)
      for (const { notes } of pages) expect(notes.length).toBeLessThanOrEqual(40)
    }
    const { isAll, notes } = await read(store, version)
    expect(isAll).toBe(false)
    expect(notes).toHaveLength(60)
    expect(notes.find(({ name }) => name === 'n3')!.text).toMatch(/^63 /)
  })

  it('tells changes to the last one, where it is of a note that was told, and where it alone is left for a page', async () => {
    await write(store, 'a', 'one')
    const { version } = await read(store)
    // As many as are read at once, and then one of them again.
    for (let i = 0; i <= 16; i++) await write(store, `n${i % 16}`, `text ${i}`)
    const last = await read(store, version)
    expect(last.notes).toHaveLength(16)
    expect(last.notes.find(({ name }) => name === 'n0')!.text).toBe('text 16')
    // As many as fill a page, and one.
    for (let i = 0; i <= 16; i++) await write(store, `m${i}`, 'x'.repeat(4096))
    expect((await read(store, last.version)).notes).toHaveLength(17)
  })

  it('tells all to who has not heard of those that made room', async () => {
    await write(store, 'a', 'one', 1000)
    const { version } = await read(store)
    const others = Array.from({ length: MAX_NOTES - 1 }, (_, i) => [`n${i}`, `${clock.now()} 0 text`])
    await redis.hset(await tableKey(), Object.fromEntries(others))
    clock.advance(1000)
    expect(await write(store, 'b', 'two')).toBe(true)
    const all = await read(store, version)
    expect(all.isAll).toBe(true)
    expect(live(all)).toHaveLength(MAX_NOTES)
  })

  it('that is full says so to each of those who write at the same time', async () => {
    await write(store, 'a', 'one')
    const others = Array.from({ length: MAX_NOTES - 1 }, (_, i) => [`n${i}`, `${clock.now()} 0 text`])
    await redis.hset(await tableKey(), Object.fromEntries(others))
    const ops = [noteOp('b', 'two'), noteOp('c', 'three'), noteOp('a', 'four')]
    const next = expect.stringMatching(/^[1-9]\d*$/)
    const full = { noted: false, next }
    expect(await outcomesOf(store, ops)).toEqual([full, full, { noted: true }])
  })

  it('outlives its notes by ten minutes at least: so long a clock may be set back', async () => {
    await write(redisStore(redis), 'a', 'one', 10)
    expect(await redis.pttl(await tableKey())).toBeGreaterThan(600_000)
  })

  it(`of ${MAX_NOTES} notes no call takes long, whatever is asked`, async () => {
    const text = 'x'.repeat(300)
    await fill(store, MAX_NOTES, text)
    const { version } = await read(store)
    const before = await calls('evalsha')
    const pages = await pagesOf(store)
    expect(pages.length).toBe((await calls('evalsha')) - before)
    expect(pages.length).toBeLessThan(100)
    expect(whole(pages).notes).toHaveLength(MAX_NOTES)
    const micros = await microsOf(() => pagesOf(store))
    const atOnce = micros.reduce((sum, each) => sum + each, 0)
    expect(Math.max(...micros)).toBeLessThan(atOnce / 5)
    expect(Math.max(...(await microsOf(() => write(store, 'more', text))))).toBeLessThan(atOnce / 5)
    for (let i = 0; i < 250; i++) await write(store, `n${i}`, text)
    expect(Math.max(...(await microsOf(() => pagesOf(store, version))))).toBeLessThan(atOnce / 5)
  })

  it('by its own clock, too', async () => {
    const own = redisStore(redis)
    const [seconds] = await redis.time()
    await write(own, 'a', 'one')
    await write(own, 'b', 'two', 60_000)
    const { version, notes } = await read(own)
    expect(version).toBeGreaterThanOrEqual(Number(seconds) * 1000)
    expect(notes.map(({ name }) => name)).toEqual(['a', 'b'])
  })
})

it('memory never drops a table to make room for keys', async () => {
  const store = memoryStore({ clock: clock.now, maxKeys: 2 })
  await write(store, 'a', 'one')
  const set = limitSet('l', [])
  const other = withLog(set, notesLog)
  expect(other.limits).toEqual([])
  await expect(
    Promise.all(
      ['x', 'y'].map((key) => outcomesOf(store, [{ ...noteOp('n', 'text'), parts: [{ key, set: other }] }])),
    ),
  ).rejects.toMatchObject({ reason: 'full' })
  expect((await read(store)).notes).toHaveLength(1)
})
