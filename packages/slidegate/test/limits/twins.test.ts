import { readdirSync, readFileSync } from 'node:fs'
import { expect, it } from 'vitest'
import { distinct, fixedWindow, slidingCounter, slidingWindow, tokenBucket } from '../../src/index.ts'
import { banLog } from '../../src/limits/ban.ts'
import type { Kind } from '../../src/limits/limit.ts'
import { OPS } from '../../src/ops/table.ts'

// Paired files have the same names in the same order. Other tests compare their behavior.

const minute = { limit: 1, window: '1m' } as const

/** The kinds by their Lua file. Names that exist in only one file follow, with the reason. */
const KINDS: Readonly<Record<string, readonly [kind: Kind, alone?: Readonly<Record<string, string>>]>> = {
  'packed-window': [
    slidingWindow(minute).kind,
    {
      readPiece: 'reads only the needed part of a large log',
      textsOf: 'the same for writing',
      textOf: 'the whole log as one string',
      replace: 'memory changes records in place',
      lowered: 'memory changes totals in place',
    },
  ],
  'token-bucket': [tokenBucket({ capacity: 1, refill: 1, interval: '1m' }).kind],
  'fixed-window': [fixedWindow(minute).kind],
  'sliding-counter': [slidingCounter(minute).kind],
  'entry-window': [
    slidingWindow({ ...minute, log: 'zset' }).kind,
    {
      membersOf: 'each unit is a member of a sorted set',
      renew: 'a decision renews existing entries',
      writeAll: 'a command has a maximum number of members',
    },
  ],
  'stream-window': [
    slidingWindow({ ...minute, log: 'stream' }).kind,
    {
      rewrite: "a stream can't be changed in the middle",
      find: 'records are never searched',
      renew: 'records are never held',
    },
  ],
  'distinct-sketch': [
    distinct({ ...minute, approximate: true }).kind,
    {
      reset: 'sketches are separate keys',
      refund: 'values are never returned',
      find: 'values are never found',
      renew: 'values are never held',
      list: 'values are never listed',
    },
  ],
  ban: [
    banLog({ after: 1, within: '1m', for: '1m' }).kind,
    {
      denialAt: 'in memory denials are numbers',
      settle: 'expired times are ignored in memory',
      refund: 'denials are never charged',
    },
  ],
}

/**
 * Names that only one of two paired files has, for all kinds. Lua gets parameters as words, and has sections for the
 * steps of a decision.
 */
const USUAL = new Set(
  (
    'load save tag isOneByOne isUnshared logName params most renumber share words read createLogs newest restamp ' +
    'check commit admit retryAfter resetAfter expiresAt entries are ban'
  ).split(' '),
)

/** The TypeScript files of a Lua file, if they have other names. */
const SOURCES: Readonly<Record<string, string>> = {
  'limits/packed-window': 'limits/packed-window limits/window-log',
  'limits/distinct-sketch': 'limits/distinct',
  'limits/stream-window': 'limits/entry-window',
  'ops/consume': 'ops/consume ops/driver',
  'ops/explain': 'ops/peek',
  'ops/rare': 'ops/driver ops/consume ops/settle',
  'ops/override': 'stores/memory/override-records',
  'ops/overrides': 'stores/memory/override-records',
  'ops/driver': 'ops/op stores/redis/encode stores/redis/decode stores/redis/decode-decision',
  'ops/prelude': 'limits/declare ops/driver stores/redis/decode-decision',
}

const read = (part: string) => readFileSync(new URL(`../../src/${part}`, import.meta.url), 'utf8')

const found = (text: string, pattern: RegExp) => Array.from(text.matchAll(pattern), ([, name]) => name!)

/** Returns the functions of a Lua file, with their names in camel case. */
const luaNames = (lua: string) =>
  found(lua, /^(?:local )?function (?:\w+\.)?(\w+)/gm).map((name) =>
    name.replace(/_[a-z]/g, ([, letter]) => letter!.toUpperCase()),
  )

/** The functions, public methods and private methods of a TypeScript file. */
const NAMES = [/^(?:export )?function (\w+)/gm, /^ {2}(\w+)\(.*\{$/gm, /^ {2}#(\w+)\(.*\{$/gm]

const CONSTANT =
  /^(?:export )?(?:const|local) ([A-Z_]+?)(?:_MS)?(?:: number)? = (-?[\d_]+)(?: (?:\*\*|\^) (\d+))?$/gm

const constantsIn = (text: string) =>
  Array.from(text.matchAll(CONSTANT), ([, name, base, power = '1']): [string, number] => [
    name!,
    Number(base!.replaceAll('_', '')) ** Number(power),
  ])

const operations = readdirSync(new URL('../../src/ops/', import.meta.url))
  .filter((name) => name.endsWith('.lua'))
  .map((name) => name.replace('.lua', ''))

const parts = new Set([
  ...Object.keys(KINDS).map((name) => `limits/${name}`),
  ...operations.map((name) => `ops/${name}`),
  'limits/override',
])

it.each(Array.from(parts))('the files of %s have the same names in the same order', (part) => {
  const [kind, alone = {}] = KINDS[part.replace('limits/', '')] ?? []
  const lua = read(`${part}.lua`)
  const sources = (SOURCES[part] ?? part).split(' ').map((source) => read(`${source}.ts`))
  const members = [kind, kind?.entries, kind?.ban].map((each) => Object.keys(each ?? {}))
  const groups = [...members, ...sources.flatMap((source) => NAMES.map((each) => found(source, each)))]
  const names = luaNames(lua)
  for (const all of groups) {
    // Two classes of a file may have a method of the same name.
    const group = Array.from(new Set(all))
    expect(group.filter((name) => names.includes(name))).toEqual(names.filter((name) => group.includes(name)))
  }

  const constants = new Map(constantsIn(lua))
  const known = sources.flatMap(constantsIn).filter(([name]) => constants.has(name))
  expect(known).toEqual(known.map(([name]) => [name, constants.get(name)]))

  if (kind === undefined) return
  expect(found(lua, /^--- (\w+)/gm).join(' ')).toMatch(/^(shared )?(before )?(read )?load check up tables$/)
  const onlyInLua = luaNames(lua.split('--- tables')[1]!).filter((name) => !groups.flat().includes(name))
  const onlyInMemory = members.flat().filter((name) => !names.includes(name))
  const only = [...onlyInLua, ...onlyInMemory].filter((name) => !USUAL.has(name))
  expect(only.sort()).toEqual(Object.keys(alone).sort())
})

it('each operation has a function in a Lua file of its name', () => {
  // Decisions are made by driver.lua and consume.lua, without such functions.
  const own = Object.entries(OPS).filter(([, { encode }]) => encode === undefined)
  const names = operations.filter((name) => /\bfunction ops\./.test(read(`ops/${name}.lua`)))
  expect(names).toEqual(['explain', ...own.map(([name]) => name)].sort())
  for (const name of names) expect(read(`ops/${name}.lua`)).toMatch(`\nfunction ops.${name}(`)
})
