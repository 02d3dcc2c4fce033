import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Redis } from 'ioredis'
import { vi } from 'vitest'
import { ManualClock } from '../../src/testing/index.ts'
import { type History, START_MS } from './histories.ts'
import { type Json, Player, type Step } from './player.ts'

const FOLDER = join(import.meta.dirname, 'fixtures')

export type RecordedStep = Step & { readonly gives?: Json }

/** The content of one Redis key. */
export type Stored =
  | { readonly key: string; readonly ttlMs: number; readonly type: 'string'; readonly hex: string }
  | { readonly key: string; readonly ttlMs: number; readonly type: 'zset'; readonly members: Pairs }
  | {
      readonly key: string
      readonly ttlMs: number
      readonly type: 'stream'
      readonly last: string
      readonly entries: readonly (readonly [id: string, fields: readonly string[]])[]
    }

type Pairs = readonly (readonly [string, string])[]

/** A history with its results in one version. The results are the state in Redis and later decisions based on it. */
export interface Fixture extends History {
  readonly did: readonly RecordedStep[]
  /** The time of the clock after the history. */
  readonly storedAtMs: number
  readonly stored: readonly Stored[]
  readonly later: readonly RecordedStep[]
}

/** Versions that have fixtures, the newest last. */
export function versions(): readonly string[] {
  return versionsIn(FOLDER)
}

/** Returns the version folders, the newest last: 0.10.0 comes after 0.2.0. */
export function versionsIn(folder: string): readonly string[] {
  return readdirSync(folder).sort((a, b) => a.localeCompare(b, 'en', { numeric: true }))
}

// Writes the head, each step, each key and each later step on its own line, so that files can be compared by line.

export function readFixtures(version: string): ReadonlyMap<string, Fixture> {
  const files = readdirSync(join(FOLDER, version)).sort()
  return new Map(
    files.map((file) => [
      file.replace('.jsonl', ''),
      read(readFileSync(join(FOLDER, version, file), 'utf8')),
    ]),
  )
}

function read(text: string): Fixture {
  const [head, ...lines] = text
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line))
  const linesOf = (name: string) => lines.filter((line) => name in line).map((line) => line[name])
  return { ...head, did: linesOf('did'), stored: linesOf('stored'), later: linesOf('later') }
}

function linesOf({ did, stored, later, ...head }: Fixture): string {
  const lines = [
    head,
    ...did.map((step) => ({ did: step })),
    ...stored.map((key) => ({ stored: key })),
    ...later.map((step) => ({ later: step })),
  ]
  return lines.map((line) => `${JSON.stringify(line)}\n`).join('')
}

/** Writes a new folder. Existing folders are never overwritten, because a released format is final. */
export function writeFixtures(version: string, fixtures: ReadonlyMap<string, Fixture>): void {
  const folder = join(FOLDER, version)
  if (existsSync(folder))
    throw new Error(`${folder} already exists. Fixtures of a released version must not change.`)
  mkdirSync(folder, { recursive: true })
  for (const [name, fixture] of fixtures) writeFileSync(join(folder, `${name}.jsonl`), linesOf(fixture))
}

/** Plays a history on an empty Redis. */
export async function record(redis: Redis, history: History): Promise<Fixture> {
  await redis.flushall()
  const clock = new ManualClock(START_MS)
  const { did, answers } = await drawingTheSame(() => playAll(redis, history, history.did, clock))
  const storedAtMs = clock.now()
  const stored = await storedIn(redis)
  const answered = await drawingTheSame(() => playAll(redis, history, history.later, clock, answers))
  return { ...history, did, storedAtMs, stored, later: answered.did }
}

/** Continues with stored state in another process. Returns the results. */
export async function goOn(redis: Redis, fixture: Fixture): Promise<readonly RecordedStep[]> {
  const clock = new ManualClock(fixture.storedAtMs)
  const { did } = await playAll(redis, fixture, fixture.later, clock, answersOf(fixture.did))
  return did
}

async function playAll(
  redis: Redis,
  { limiters }: History,
  steps: readonly Step[],
  clock: ManualClock,
  known: ReadonlyMap<string, Json> = new Map(),
) {
  const player = new Player(redis, limiters, clock)
  for (const [name, answer] of known) player.remember(name, answer)
  const did: RecordedStep[] = []
  for (const step of steps) {
    const gives = await player.play(step)
    did.push(gives === undefined ? step : { ...step, gives })
  }
  player.close()
  return { did, answers: answersOf(did) }
}

function answersOf(steps: readonly RecordedStep[]): ReadonlyMap<string, Json> {
  return new Map(
    steps.flatMap((step) => ('as' in step && step.as !== undefined ? [[step.as, step.gives!] as const] : [])),
  )
}

/** Makes generated names deterministic. */
async function drawingTheSame<Result>(run: () => Promise<Result>): Promise<Result> {
  const drawn = vi.spyOn(crypto, 'getRandomValues').mockImplementation((array) => {
    new Uint8Array(array!.buffer, array!.byteOffset, array!.byteLength).fill(7)
    return array
  })
  try {
    return await run()
  } finally {
    drawn.mockRestore()
  }
}

/** Returns all data in Redis, sorted by key. The random name that a store uses for its receipts is replaced. */
export async function storedIn(redis: Redis): Promise<readonly Stored[]> {
  const keys = (await redis.keys('*')).sort()
  return Promise.all(keys.map((key) => readKey(redis, key)))
}

/** Returns the TTL in whole seconds, because Redis expires keys by its own clock. */
const ttlOf = async (redis: Redis, key: string) => {
  const ms = await redis.pttl(key)
  return ms < 0 ? ms : 1000 * Math.ceil(ms / 1000)
}

export async function readKey(redis: Redis, key: string): Promise<Stored> {
  const [type, ttlMs] = await Promise.all([redis.type(key), ttlOf(redis, key)])
  const name = key.replace(/:~[\w-]{16}:/, ':~<store>:')
  switch (type) {
    case 'string':
      return { key: name, ttlMs, type, hex: (await redis.getBuffer(key))!.toString('hex') }
    case 'zset':
      return { key: name, ttlMs, type, members: pairs(await redis.zrange(key, 0, -1, 'WITHSCORES')) }
    case 'stream': {
      const info = (await redis.xinfo('STREAM', key)) as string[]
      const last = info[info.indexOf('last-generated-id') + 1]!
      return { key: name, ttlMs, type, last, entries: await redis.xrange(key, '-', '+') }
    }
    default:
      throw new Error(`Unexpected type ${type} of ${key}`)
  }
}

function pairs(words: readonly string[]): Pairs {
  return words.flatMap((word, i) => (i % 2 === 0 ? [[word, words[i + 1]!] as const] : []))
}

/** Restores state into an empty Redis. */
export async function restore(redis: Redis, stored: readonly Stored[]): Promise<void> {
  await redis.flushall()
  for (const each of stored) {
    const { key, ttlMs } = each
    if (each.type === 'string') await redis.set(key, Buffer.from(each.hex, 'hex'))
    if (each.type === 'zset') await redis.zadd(key, ...each.members.flatMap(([name, score]) => [score, name]))
    if (each.type === 'stream') {
      for (const [id, fields] of each.entries) await redis.xadd(key, id, ...fields)
      await redis.call('XSETID', key, each.last)
    }
    if (ttlMs > 0) await redis.pexpire(key, ttlMs)
  }
}
