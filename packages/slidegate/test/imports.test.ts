import { readdirSync, readFileSync } from 'node:fs'
import { dirname, join, relative, resolve } from 'node:path'
import { describe, expect, it } from 'vitest'
import { ROOT } from './docs/markdown.ts'

// Checks which folder may import from which, and that there are no import cycles. Type imports count too.

/** The layers of the library, from the bottom up. A file may import from its own folder and from lower layers. */
const FLOORS: readonly string[][] = [
  ['decision'],
  ['errors'],
  ['runtime'],
  ['key'],
  ['events'],
  ['limits'],
  ['ops'],
  ['stores'],
  ['resilience'],
  ['limiter', 'stores/redis/index'],
  ['stores/remote'],
  ['observe', 'outbound', 'testing', 'http'],
  ['adapters'],
  ['calendar', 'index'],
]

/** Folders with stricter rules. They may import only these files of another folder. */
const ONLY: readonly (readonly [room: string, of: string, files: RegExp, why: string])[] = [
  ['ops|stores/(memory|redis)', 'limits', /\/(limit|limit-set|override)$/, "they don't know kinds of limits"],
  ['resilience', 'limits', /\/(limit|limit-set|override)$/, "wrappers don't know kinds of limits"],
  [
    'resilience',
    'stores/(memory|redis)',
    /memory\/memory$/,
    'wrappers know the contract of a store, but no other store',
  ],
  ['stores/redis/create-client', 'limits', /^$/, "a client doesn't know limits"],
  ['stores/redis/index', 'resilience', /\/failure-policy$/, 'a store includes its failure policy'],
  ['http', 'limits', /\/limit$/, 'the guard works with any kind of limit'],
  ['outbound', 'limits', /\/(limit|declare|sliding-window)$/, 'upstreams are counted by sliding windows'],
  ['outbound', 'stores|resilience', /^$/, 'they work with any limiter'],
  ['http|outbound|observe', 'stores|resilience', /(stores\/store|call-counts)$/, 'they work with any store'],
  ['adapters', 'limits|limiter|stores|resilience|runtime', /^$/, 'adapters use http/ for all decisions'],
]

/** The files that may import a package. `adapters/small.test.ts` checks that each adapter imports only its own framework. */
const PACKAGES: readonly (readonly [name: RegExp, files: RegExp])[] = [
  [/^temporal-polyfill/, /limits\/calendar$/],
  [/^(redis|ioredis)$/, /stores\/redis\/create-client$/],
  [/^(express|fastify|hono|koa|ws|socket\.io|@nestjs\/.*)$/, /^adapters\//],
  [/^@opentelemetry\/api$/, /^observe\/(measure|traced|replayed-histogram)$/],
  [/^node:/, /^(adapters|http|stores\/redis|testing)\//],
  [/^(ipaddr\.js|negotiator|structured-headers)/, /^(http|outbound)\//],
]

interface File {
  /** The path in `src` without its extension. */
  readonly path: string
  readonly imports: readonly string[]
  readonly packages: readonly string[]
}

function filesOf(source: string): File[] {
  const root = join(ROOT, 'packages', source, 'src')
  const nameOf = (path: string) => relative(root, path).replace(/\.tsx?$/, '')
  const paths = readdirSync(root, { recursive: true, encoding: 'utf8' })
  return paths
    .filter((path) => /\.tsx?$/.test(path))
    .map((path) => {
      const file = join(root, path)
      const found = readFileSync(file, 'utf8').matchAll(/^(?! *\*).*?\b(?:from|import)[ (]'([^']+)'/gm)
      const specifiers = Array.from(found, ([, specifier]) => specifier!)
      return {
        path: nameOf(file),
        imports: specifiers.filter((s) => s.startsWith('.')).map((s) => nameOf(resolve(dirname(file), s))),
        packages: specifiers.filter((s) => !/^(\.|slidegate\/)/.test(s)),
      }
    })
}

const isIn = (path: string, room: string) => new RegExp(`^(${room})(/|$)`).test(path)

/** Returns the highest layer that contains the path. */
function floorOf(path: string): number {
  return FLOORS.findLastIndex((rooms) => rooms.some((room) => isIn(path, room)))
}

const library = filesOf('slidegate')

const roomOf = (path: string) => FLOORS[floorOf(path)]?.find((room) => isIn(path, room))

it('a file imports only from its own folder and from lower layers', () => {
  const wrong = library.flatMap(({ path, imports }) =>
    imports
      .filter((to) => floorOf(to) >= floorOf(path) && roomOf(to) !== roomOf(path))
      .map((to) => `${path} imports ${to}`),
  )
  expect(wrong).toEqual([])
  expect(library.filter(({ path }) => floorOf(path) < 0)).toEqual([])
})

it.each(ONLY)('%s imports from %s only %s, because %s', (room, of, files) => {
  const wrong = library
    .filter(({ path }) => isIn(path, room))
    .flatMap(({ path, imports }) =>
      imports.filter((to) => isIn(to, of) && !files.test(to)).map((to) => `${path} imports ${to}`),
    )
  expect(wrong).toEqual([])
})

it('packages are imported only where they belong', () => {
  const wrong = library.flatMap(({ path, packages }) =>
    packages
      .filter((name) => !PACKAGES.some(([known, files]) => known.test(name) && files.test(path)))
      .map((name) => `${path} imports ${name}`),
  )
  expect(wrong).toEqual([])
})

it("the service uses only the library's public entry points, and the dashboard runs in browsers", () => {
  const outside = (source: string, allowed: RegExp) =>
    filesOf(source).flatMap(({ path, imports, packages }) =>
      [...imports.filter((to) => to.startsWith('..')), ...packages]
        .filter((to) => !allowed.test(to))
        .map((to) => `${path} imports ${to}`),
    )
  expect(outside('server', /replay\/src\/|^(?!vitest)[^.]/)).toEqual([])
  expect(outside('replay', /^(?!vitest|fastify|pino)[^.]/)).toEqual([])
  const page =
    /server\/src\/admin\/api-types$|docs\/alerts\.md\?raw$|replay\/src\/(text|log\/(?!read-lines).*|counts\/(fullest-window|needed-limits))$|^(?!node:|ioredis|fastify|vitest)[^.]/
  expect(outside('dashboard', page)).toEqual([])
})

it('the service takes only types from TypeBox', () => {
  const files = filesOf('server').filter(({ packages }) => packages.includes('typebox'))
  expect(files.map(({ path }) => path)).toEqual(['json-schema'])
  const text = readFileSync(join(ROOT, 'packages/server/src/json-schema.ts'), 'utf8')
  expect(text.match(/^(?!(import|export) type).*'typebox'/gm)).toBeNull()
})

describe.each(['slidegate', 'replay', 'server', 'dashboard'])('the files of %s', (source) => {
  it("don't import each other in a circle", () => {
    const left = new Map(filesOf(source).map(({ path, imports }) => [path, imports]))
    // Files whose imports have all been removed aren't in a cycle.
    for (let before = -1; before !== left.size; ) {
      before = left.size
      for (const [path, imports] of left) if (!imports.some((to) => left.has(to))) left.delete(path)
    }
    // Neither are files that no remaining file imports.
    for (let before = -1; before !== left.size; ) {
      before = left.size
      const imported = new Set(Array.from(left.values()).flat())
      for (const path of left.keys()) if (!imported.has(path)) left.delete(path)
    }
    expect(Array.from(left.keys())).toEqual([])
  })
})
