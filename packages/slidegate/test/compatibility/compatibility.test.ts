// tier: integration
import { readFileSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import type { Role } from '../../src/limits/limit-set.ts'
import { allowAll } from '../support/access.ts'
import { SAMPLES } from '../support/kinds.ts'
import { useRedis } from '../support/use-redis.ts'
import {
  goOn,
  type RecordedStep,
  readFixtures,
  readKey,
  record,
  restore,
  type Stored,
  storedIn,
  versions,
} from './fixture.ts'
import { HISTORIES } from './histories.ts'

// Tests state that released versions stored in Redis, byte for byte. The current code must decide exactly like that
// version, and write the same bytes. CONTRIBUTING.md shows how to add a folder with `npm run fixtures`.

const byVersion = new Map(versions().map((version) => [version, readFixtures(version)]))
const newest = byVersion.get(versions().at(-1)!)!
const all = Array.from(byVersion, ([version, fixtures]) =>
  Array.from(fixtures, ([name, fixture]) => ({ version, name, fixture })),
).flat()
const ofNewest = all.filter(({ version }) => version === versions().at(-1))

const { redis, server } = await useRedis()
// A stream's last id is read with XINFO, which no store needs.
await allowAll(server.port)

describe.each(all)('state stored by $version: $name', ({ fixture }) => {
  it('gives the same decisions as in that version', async () => {
    await restore(redis, fixture.stored)
    expect(withoutTimes(await storedIn(redis))).toEqual(withoutTimes(fixture.stored))
    const results = await goOn(redis, fixture)
    for (const [i, step] of fixture.later.entries()) expectResult(results[i]!, step)
  })
})

/** Expects the recorded result. A later version may return more fields. */
function expectResult(actual: RecordedStep, wanted: RecordedStep): void {
  expect({ actual }).toMatchObject({ actual: JSON.parse(JSON.stringify(wanted), patient) })
}

/** Tolerates differences in `expiresInMs`: this process measures it, and a machine may hang for seconds. */
function patient(name: string, value: unknown): unknown {
  return name === 'expiresInMs' && value !== 0 ? expect.closeTo(value as number, -5) : value
}

/**
 * Replaces each TTL with whether the key has one. Redis expires keys by its own clock, and versions may renew TTLs
 * differently.
 */
function withoutTimes(stored: readonly Stored[]): readonly object[] {
  return stored.map(({ ttlMs, ...each }) => ({ ...each, expires: ttlMs > 0 }))
}

describe.each(ofNewest)('state stored by this version: $name', ({ name, fixture }) => {
  it('matches the newest fixtures', async () => {
    const { what, limiters, did, later } = fixture
    const withoutResults = (steps: readonly RecordedStep[]) => steps.map(({ gives, ...step }) => step)
    // Changing a history or a format needs a new folder.
    expect({ what, limiters, did: withoutResults(did), later: withoutResults(later) }).toEqual(
      JSON.parse(JSON.stringify(HISTORIES.get(name))),
    )
    const now = await record(redis, fixture)
    expect(withoutTimes(now.stored)).toEqual(withoutTimes(fixture.stored))
    for (const [i, step] of did.entries()) expectResult(now.did[i]!, step)
  })
})

describe('state in an unknown format', () => {
  const changed = ofNewest.flatMap(({ name, fixture }) =>
    fixture.stored
      .filter(({ key }) => !isReceipt(key) && !isSketch(key))
      .map((stored) => ({ name, fixture, stored })),
  )

  it.each(changed)(
    'stays unchanged and gives no decisions: $stored.key of $name',
    async ({ fixture, stored }) => {
      const { key } = stored
      await restore(redis, fixture.stored)
      if (stored.type === 'string')
        await redis.setrange(key, 0, Buffer.of(Buffer.from(stored.hex, 'hex')[0]! + 1))
      else await redis.set(key, 'of a type that comes later')
      const before = await readKey(redis, key)
      const results = await goOn(redis, fixture)
      expect(results.some(isRefused)).toBe(true)
      // Requests read all logs except reservations and override indexes, which only their own operations read.
      const isRead = !/:(r\d*|~overrides)$/.test(key)
      const hasOneKey = fixture.stored.every(
        (each) => isReceipt(each.key) || headOf(each.key) === headOf(key),
      )
      if (isRead && hasOneKey) expect(results.filter(isRequest).every(isRefused)).toBe(true)
      expect(withoutTimes([await readKey(redis, key)])).toEqual(withoutTimes([before]))
    },
  )
})

function isRefused({ gives }: RecordedStep): boolean {
  return JSON.stringify(gives ?? null).includes('"reason":"invalid_state"')
}

function isRequest(step: RecordedStep): boolean {
  return 'call' in step && ['consume', 'peek', 'drain'].includes(step.call)
}

/** Returns the key without the name of its log. */
function headOf(key: string): string {
  return key.slice(0, key.lastIndexOf(':'))
}

describe('every stored format has a fixture', () => {
  const stored = Array.from(newest.values(), (fixture) => fixture.stored).flat()
  /** Logs by the letters of their names, which stand for a kind and its alignment. */
  const logs = new Map<string, Stored[]>()
  for (const each of stored) {
    const letters = lettersOf(each.key)
    logs.set(letters, [...(logs.get(letters) ?? []), each])
  }
  const read = (path: string) => readFileSync(new URL(`../../${path}`, import.meta.url), 'utf8')

  it.each(Object.entries(SAMPLES))('for %s', (_, { make }) => {
    const limit = make({ limit: 4 })
    expect(Array.from(logs.keys())).toContain(lettersOf(`:${limit.kind.logName(limit)}`))
  })

  it('for every history', () => {
    expect(Array.from(newest.keys()).sort()).toEqual(Array.from(HISTORIES.keys()).sort())
  })

  it('for every role of a log', () => {
    const byRole: Record<Role, string> = {
      ...{ count: 'w', ban: 'b', reservations: 'r' },
    }
    for (const letters of Object.values(byRole)) expect(Array.from(logs.keys())).toContain(letters)
  })

  it('for an override and an index', () => {
    expect(stored.filter(({ key }) => key.endsWith(':o')).length).toBeGreaterThan(4)
    expect(stored.filter(({ key }) => key.endsWith(':~overrides'))).not.toEqual([])
  })

  it('for every kind in the script, in every format', () => {
    const [, names = ''] = /^const KINDS = \[\n([^\]]*)\]$/m.exec(read('scripts/embed-lua.js'))!
    const [, tags = ''] = /^const KINDS = '(\w+)'$/m.exec(read('src/stores/redis/encode.ts'))!
    const files = Array.from(names.matchAll(/'([\w-]+)'/g), ([, file]) => file!)
    expect(files.length).toBeGreaterThan(7)
    expect(files).toHaveLength(tags.length)
    for (const [i, file] of files.entries()) {
      const tag = tags[i]!
      const ofKind = Array.from(logs).flatMap(([letters, each]) =>
        letters.startsWith(tag) && !isSketch(letters) ? each : [],
      )
      expect([tag, ofKind.length]).not.toEqual([tag, 0])
      const lua = read(`src/limits/${file}.lua`)
      const found = ofKind.flatMap((each) =>
        each.type === 'string' ? [Number.parseInt(each.hex.slice(0, 2), 16)] : [],
      )
      const written = Array.from(
        lua.matchAll(/(?:^local FORMAT = |struct_pack\(\s*\w+_FORMAT, )(\d+)/gm),
        ([, format]) => Number(format),
      )
      expect([tag, new Set(found)]).toEqual([tag, new Set(written)])
    }
  })

  it('for every part of a sliding window log', () => {
    const bytes = logs.get('w')!.map((each) => Buffer.from(each.type === 'string' ? each.hex : '', 'hex'))
    const number = (log: Buffer, at: number, length: number) => log.readUIntBE(at, length)
    const parts: Readonly<Record<string, (log: Buffer) => boolean>> = {
      'without a ring': (log) => number(log, 7, 2) === 0,
      'with a small ring': (log) => number(log, 37, 2) > 0 && number(log, 7, 2) <= 64,
      'with a large ring': (log) => number(log, 37, 2) > 64,
      'with an empty ring': (log) => number(log, 7, 2) > 0 && number(log, 37, 2) === 0,
      'with a ring that starts in the middle': (log) => number(log, 35, 2) > 0,
      'with a ring that wraps around': (log) =>
        number(log, 35, 2) + number(log, 37, 2) > number(log, 7, 2) && number(log, 7, 2) > 0,
      'with a lease': (log) => log[33]! >= 16,
      'with a base': (log) => number(log, 15, 6) > 0,
      'with totals above the maximum of a log': (log) => number(log, 21, 6) > 2 ** 46,
      'with a full front': (log) => log[33] === 4,
      'with a full back': (log) => log[34] === 4,
      'with only the newest record': (log) => log[33] === 0 && log[34] === 0,
    }
    for (const [part, isIn] of Object.entries(parts)) expect([part, bytes.some(isIn)]).toEqual([part, true])
  })
})

/**
 * Returns the letters of the log's name.
 * Examples: `w` for `w1`, `fhit` for `fhit60000`, `fday` for `fday-Europe/Berlin`, `e~` for the sketch `e60000~7`,
 * and nothing for a receipt.
 */
function lettersOf(key: string): string {
  const [, letters, sketch] = /:(~overrides|[a-z]*)[^:~]*(~\d)?[^:]*$/.exec(key)!
  return sketch === undefined ? letters! : `${letters}~`
}

/** Whether a key or its letters belong to a sketch, which has Redis's own format. */
function isSketch(name: string): boolean {
  return /e\d*~\d*$/.test(name)
}

it('no log has two formats under one name, so that versions can run side by side', () => {
  const forms = new Map<string, Set<string>>()
  for (const { fixture } of all) {
    for (const each of fixture.stored) {
      const letters = lettersOf(each.key)
      const form =
        each.type === 'string' && !isReceipt(each.key) ? `string ${each.hex.slice(0, 2)}` : each.type
      forms.set(letters, (forms.get(letters) ?? new Set()).add(form))
    }
  }
  for (const [letters, found] of forms) expect([letters, found.size]).toEqual([letters, 1])
})

function isReceipt(key: string): boolean {
  return key.includes(':~<store>:')
}
