// tier: integration
import { readFileSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import type { Role } from '../../src/limits/limit-set.ts'
import { allowAll } from '../support/access.ts'
import { SAMPLES } from '../support/kinds.ts'
import { useRedis } from '../support/use-redis.ts'
import {
  goOn,
  readFixtures,
  readKey,
  record,
  restore,
  type Stored,
  storedIn,
  type Told,
  versions,
} from './fixture.ts'
import { HISTORIES } from './histories.ts'

// State in Redis as released versions have left it, byte for byte. The present code goes on from it exactly as the version
// that has written it did, and writes the same. How a folder is added: `npm run fixtures`, in CONTRIBUTING.md.

const byVersion = new Map(versions().map((version) => [version, readFixtures(version)]))
const newest = byVersion.get(versions().at(-1)!)!
const all = Array.from(byVersion, ([version, fixtures]) =>
  Array.from(fixtures, ([name, fixture]) => ({ version, name, fixture })),
).flat()
const ofNewest = all.filter(({ version }) => version === versions().at(-1))

const { redis, server } = await useRedis()
// What a stream was is seen by XINFO, which no store needs.
await allowAll(server.port)

describe.each(all)('what $version has stored: $name', ({ fixture }) => {
  it('is gone on from as that version did', async () => {
    await restore(redis, fixture.stored)
    // What is put there is what was there, to the byte.
    expect(withoutTimes(await storedIn(redis))).toEqual(withoutTimes(fixture.stored))
    const told = await goOn(redis, fixture)
    for (const [i, step] of fixture.later.entries()) expectTold(told[i]!, step)
  })
})

/** A later version may say more. */
function expectTold(told: Told, wanted: Told): void {
  expect({ told }).toMatchObject({ told: JSON.parse(JSON.stringify(wanted), patient) })
}

/** It is told by the time that this process has gone through since it was read: a machine may stand still for seconds. */
function patient(name: string, value: unknown): unknown {
  return name === 'expiresInMs' && value !== 0 ? expect.closeTo(value as number, -5) : value
}

/** Redis expires by its own time, and when a TTL is renewed may change; whether there is one may not. */
function withoutTimes(stored: readonly Stored[]): readonly object[] {
  return stored.map(({ ttlMs, ...each }) => ({ ...each, expires: ttlMs > 0 }))
}

describe.each(ofNewest)('what is stored now: $name', ({ name, fixture }) => {
  it('is what the newest fixtures hold', async () => {
    const { what, limiters, did, later } = fixture
    const asked = (steps: readonly Told[]) => steps.map(({ gives, ...step }) => step)
    // Another history needs another folder, as another form does.
    expect({ what, limiters, did: asked(did), later: asked(later) }).toEqual(
      JSON.parse(JSON.stringify(HISTORIES.get(name))),
    )
    const now = await record(redis, fixture)
    expect(withoutTimes(now.stored)).toEqual(withoutTimes(fixture.stored))
    for (const [i, step] of did.entries()) expectTold(now.did[i]!, step)
  })
})

describe('what is stored in a form that this version does not know', () => {
  const changed = ofNewest.flatMap(({ name, fixture }) =>
    fixture.stored
      .filter(({ key }) => !isReceipt(key) && !isSketch(key))
      .map((stored) => ({ name, fixture, stored })),
  )

  it.each(changed)(
    'is left as it is, and nothing is decided by it: $stored.key of $name',
    async ({ fixture, stored }) => {
      const { key } = stored
      await restore(redis, fixture.stored)
      if (stored.type === 'string')
        await redis.setrange(key, 0, Buffer.of(Buffer.from(stored.hex, 'hex')[0]! + 1))
      else await redis.set(key, 'of a type that comes later')
      const before = await readKey(redis, key)
      const told = await goOn(redis, fixture)
      expect(told.some(isRefused)).toBe(true)
      // What requests read; of a reservation or the index of overrides only those who ask for it hear.
      const isRead = !/:(r\d*|~overrides)$/.test(key)
      const hasOneKey = fixture.stored.every(
        (each) => isReceipt(each.key) || headOf(each.key) === headOf(key),
      )
      if (isRead && hasOneKey) expect(told.filter(isRequest).every(isRefused)).toBe(true)
      expect(withoutTimes([await readKey(redis, key)])).toEqual(withoutTimes([before]))
    },
  )
})

function isRefused({ gives }: Told): boolean {
  return JSON.stringify(gives ?? null).includes('"reason":"invalid_state"')
}

function isRequest(step: Told): boolean {
  return 'call' in step && ['consume', 'peek', 'drain'].includes(step.call)
}

/** All but the name of the log. */
function headOf(key: string): string {
  return key.slice(0, key.lastIndexOf(':'))
}

describe('every form that is stored has a fixture', () => {
  const stored = Array.from(newest.values(), (fixture) => fixture.stored).flat()
  /** By the letters of a log's name: those that stand for a kind, and for how it is aligned. */
  const logs = new Map<string, Stored[]>()
  for (const each of stored) {
    const letters = lettersOf(each.key)
    logs.set(letters, [...(logs.get(letters) ?? []), each])
  }
  const read = (path: string) => readFileSync(new URL(`../../${path}`, import.meta.url), 'utf8')

  it.each(Object.entries(SAMPLES))('of %s', (_, { make }) => {
    const limit = make({ limit: 4 })
    expect(Array.from(logs.keys())).toContain(lettersOf(`:${limit.kind.logName(limit)}`))
  })

  it('of every history', () => {
    expect(Array.from(newest.keys()).sort()).toEqual(Array.from(HISTORIES.keys()).sort())
  })

  it('of every role of a log', () => {
    const byRole: Record<Role, string> = {
      ...{ count: 'w', ban: 'b', reservations: 'r' },
    }
    for (const letters of Object.values(byRole)) expect(Array.from(logs.keys())).toContain(letters)
  })

  it('of an override, and of an index', () => {
    expect(stored.filter(({ key }) => key.endsWith(':o')).length).toBeGreaterThan(4)
    expect(stored.filter(({ key }) => key.endsWith(':~overrides'))).not.toEqual([])
  })

  it('of every kind that the script has, in every format', () => {
    const [, names = ''] = /^const KINDS = \[\n([^\]]*)\]$/m.exec(read('scripts/embed-lua.js'))!
    const [, tags = ''] = /^const KINDS = '(\w+)'$/m.exec(read('src/stores/redis/set-words.ts'))!
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

  it('of every part of a log of sliding windows', () => {
    const bytes = logs.get('w')!.map((each) => Buffer.from(each.type === 'string' ? each.hex : '', 'hex'))
    const number = (log: Buffer, at: number, length: number) => log.readUIntBE(at, length)
    const parts: Readonly<Record<string, (log: Buffer) => boolean>> = {
      'no ring': (log) => number(log, 7, 2) === 0,
      'a small ring': (log) => number(log, 37, 2) > 0 && number(log, 7, 2) <= 64,
      'a large ring': (log) => number(log, 37, 2) > 64,
      'an empty ring': (log) => number(log, 7, 2) > 0 && number(log, 37, 2) === 0,
      'a ring that begins in its middle': (log) => number(log, 35, 2) > 0,
      'a ring that goes over its end': (log) =>
        number(log, 35, 2) + number(log, 37, 2) > number(log, 7, 2) && number(log, 7, 2) > 0,
      'a lease': (log) => log[33]! >= 16,
      'a base': (log) => number(log, 15, 6) > 0,
      'totals above what a log holds': (log) => number(log, 21, 6) > 2 ** 46,
      'a full front': (log) => log[33] === 4,
      'a full back': (log) => log[34] === 4,
      'nothing but the newest': (log) => log[33] === 0 && log[34] === 0,
    }
    for (const [part, isIn] of Object.entries(parts)) expect([part, bytes.some(isIn)]).toEqual([part, true])
  })
})

/**
 * Of the log's name: `w` of `w1`, `fhit` of `fhit60000`, `fday` of `fday-Europe/Berlin`, `e~` of a sketch, `e60000~7`;
 * nothing of a receipt.
 */
function lettersOf(key: string): string {
  const [, letters, sketch] = /:(~overrides|[a-z]*)[^:~]*(~\d)?[^:]*$/.exec(key)!
  return sketch === undefined ? letters! : `${letters}~`
}

/** Whether it is in the form of Redis itself, by the name of a key or its letters. */
function isSketch(name: string): boolean {
  return /e\d*~\d*$/.test(name)
}

it('no log has two forms under one name, so that versions may run side by side', () => {
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
