import type { Readable } from 'node:stream'
import { setImmediate } from 'node:timers/promises'
import type { Decision } from 'slidegate'
import { ManualClock } from 'slidegate/testing'
import { describe, expect, it } from 'vitest'
import type { TailDecision } from '../../src/admin/api-types.ts'
import { EventStreams } from '../../src/admin/event-streams.ts'
import { Tail, type TailFilter } from '../../src/admin/tail.ts'
import { OneProcess, type Processes } from '../../src/service/instance.ts'

const decision: Decision = {
  ...{ allowed: true, cost: 1, remaining: 3, retryAfterMs: 0, resetAfterMs: 0, deniedBy: [], limits: [] },
  ...{ source: 'store', atMs: 1_700_000_000_000 },
}
const denial: Decision = { ...decision, allowed: false, remaining: 0, retryAfterMs: 500, deniedBy: ['x'] }
const everything = (): TailFilter => ({ limiters: ['api', 'login'] })

interface Setting {
  readonly tail: Tail
  readonly streams: EventStreams
  readonly clock: ManualClock
  /** Runs all timers once. */
  turn(): Promise<void>
}

function setUp(processes: Processes = new OneProcess()): Setting {
  const turns: (() => unknown)[] = []
  const clock = new ManualClock(0)
  const every = (_ms: number, run: () => void) => {
    turns.push(run)
    return () => void turns.splice(turns.indexOf(run), 1)
  }
  const streams = new EventStreams(every)
  const tail = new Tail(processes, streams, () => clock.now())
  const turn = async () => {
    // Lets a running poll finish first.
    await setImmediate()
    await Promise.all(turns.map((run) => run()))
  }
  return { tail, streams, clock, turn }
}

/** Reads all available events. */
function read(stream: Readable): { lines: TailDecision[]; lost: number } {
  const text = String(stream.read() ?? '')
  const of = (event: string) =>
    Array.from(text.matchAll(new RegExp(`^event: ${event}\ndata: (.*)$`, 'gm')), ([, data]) =>
      JSON.parse(data!),
    )
  return { lines: of('decision'), lost: of('lost').reduce((sum, { lost }) => sum + lost, 0) }
}

async function opened(setting: Setting, filter = everything): Promise<Readable> {
  const stream = setting.tail.open(filter)
  await setting.turn()
  read(stream)
  return stream
}

describe('the tail', () => {
  it('buffers lines for at most 1,024 readers, and forgets readers that are gone', async () => {
    const processes = new OneProcess()
    const { tail, clock } = setUp(processes)
    const read = (id: number) => processes.ask('tail', { id: `${id}`, take: false, filter: everything() })
    for (let i = 0; i < 2000; i++) await read(i)
    expect(tail.readers).toBe(1024)
    clock.advance(6000)
    await read(2000)
    expect(tail.readers).toBe(1)
  })

  it('streams decisions as they happen', async () => {
    const setting = setUp()
    const stream = await opened(setting)
    setting.tail.decided('api', 'ann', decision)
    setting.tail.decided('login', { user: 'bob', address: null }, { ...denial, blockedMs: 500 })
    await setting.turn()
    expect(read(stream)).toEqual({
      lost: 0,
      lines: [
        {
          ...{ limiter: 'api', key: 'ann', allowed: true, cost: 1, remaining: 3, retryAfterMs: 0 },
          ...{ deniedBy: [], source: 'store', atMs: 1_700_000_000_000 },
        },
        expect.objectContaining({ limiter: 'login', key: { user: 'bob' }, allowed: false, blockedMs: 500 }),
      ],
    })
  })

  it('writes infinity as null, and lists shadow limits that would have denied', async () => {
    const setting = setUp()
    const stream = await opened(setting)
    const limits = [{ name: 'hourly', shadow: true, allowed: false }] as unknown as Decision['limits']
    const never = { remaining: Number.POSITIVE_INFINITY, retryAfterMs: Number.POSITIVE_INFINITY }
    setting.tail.decided('api', 'ann', { ...decision, ...never, limits })
    await setting.turn()
    expect(read(stream).lines).toMatchObject([
      { remaining: null, retryAfterMs: null, shadowDeniedBy: ['hourly'] },
    ])
  })

  it.each<[string, Partial<TailFilter>, string[]]>([
    ['a limiter', { limiters: ['login'] }, ['bob']],
    ['a key', { key: 'ann' }, ['ann', 'ann']],
    ['denials', { denied: true }, ['ann', 'bob']],
    ['a key and denials', { key: 'ann', denied: true }, ['ann']],
  ])('filters by %s', async (_, filter, keys) => {
    const setting = setUp()
    const stream = await opened(setting, () => ({ ...everything(), ...filter }))
    setting.tail.decided('api', 'ann', decision)
    setting.tail.decided('api', { user: 'ann' }, denial)
    setting.tail.decided('login', 'bob', denial)
    await setting.turn()
    const seen = read(stream).lines.map(({ key }) => (typeof key === 'string' ? key : key.user))
    expect(seen).toEqual(keys)
  })

  it('buffers nothing without readers', async () => {
    const setting = setUp()
    setting.tail.decided('api', 'ann', decision)
    const stream = setting.tail.open(everything)
    await setting.turn()
    expect(setting.tail.readers).toBe(1)
    expect(read(stream).lines).toEqual([])
    stream.destroy()
    await setting.turn()
    expect(setting.tail.readers).toBe(0)
  })

  it('drops decisions for a slow reader, and reports how many', async () => {
    const setting = setUp()
    const stream = await opened(setting)
    let sent = 0
    const flood = async (count: number) => {
      for (let i = 0; i < count; i++) setting.tail.decided('api', 'ann', decision)
      sent += count
      await setting.turn()
    }
    // Sends more than a reader takes in one read. The rest must stay in the bounded buffer.
    await flood(900)
    for (let i = 0; i < 20; i++) await flood(900)
    expect(stream.readableLength).toBeLessThan(1_000_000)
    let lines = 0
    let lost = 0
    for (let i = 0; i < 5; i++) {
      const seen = read(stream)
      lines += seen.lines.length
      lost += seen.lost
      await setting.turn()
    }
    expect(lines).toBeLessThan(5000)
    expect(lost).toBeGreaterThan(0)
    expect(lines + lost).toBe(sent)
  })

  it('ends for a reader that reads nothing for a minute', async () => {
    const setting = setUp()
    const streams = [await opened(setting), await opened(setting)] as const
    const [stuck, slow] = streams
    for (let i = 0; i < 700; i++) {
      for (let j = 0; j < 900 && i < 20; j++) setting.tail.decided('api', 'ann', decision)
      await setting.turn()
      if (i === 300) while (slow.read() !== null);
      if (i === 500) expect(stuck.destroyed).toBe(false)
    }
    expect(streams.map(({ destroyed }) => destroyed)).toEqual([true, false])
    expect(setting.tail.readers).toBe(1)
  })

  it('forgets a reader in a process that is gone', async () => {
    const processes = new OneProcess()
    const setting = setUp(processes)
    await processes.ask('tail', { id: 'elsewhere', filter: everything(), take: false })
    setting.clock.advance(5000)
    setting.tail.decided('api', 'ann', decision)
    expect(setting.tail.readers).toBe(1)
    setting.clock.advance(1)
    setting.tail.decided('api', 'ann', decision)
    expect(setting.tail.readers).toBe(0)
  })

  it('allows at most 64 readers per process', () => {
    const { tail } = setUp()
    const streams = Array.from({ length: 64 }, () => tail.open(everything))
    expect(() => tail.open(everything)).toThrow(
      expect.objectContaining({ status: 429, code: 'too_many_readers' }),
    )
    streams[0]!.destroy()
    expect(() => tail.open(everything)).not.toThrow()
  })

  it('ends for all readers when the service stops', async () => {
    const setting = setUp()
    const stream = await opened(setting)
    setting.streams.close()
    expect(stream.destroyed).toBe(true)
  })

  it('sends a comment every 15 seconds without decisions', async () => {
    const setting = setUp()
    const stream = await opened(setting)
    for (let i = 0; i < 140; i++) await setting.turn()
    expect(stream.read()).toBeNull()
    for (let i = 0; i < 20; i++) await setting.turn()
    expect(String(stream.read())).toBe(':\n\n')
  })

  it('includes all processes, in chronological order', async () => {
    const [first, second] = [new OneProcess(), new OneProcess()]
    const both: Processes = {
      instance: 'both',
      answer: (question, answer) => first.answer(question, answer),
      ask: async (question, argument) => [
        ...(await first.ask(question, argument)),
        ...(await second.ask(question, argument)),
      ],
    }
    const here = setUp(both)
    const elsewhere = setUp(second)
    const stream = await opened(here)
    elsewhere.tail.decided('api', 'early', { ...decision, atMs: 1 })
    here.tail.decided('api', 'late', { ...decision, atMs: 2 })
    await here.turn()
    expect(read(stream).lines.map(({ key }) => key)).toEqual(['early', 'late'])
    stream.destroy()
    await here.turn()
    expect(elsewhere.tail.readers).toBe(0)
  })
})
