// tier: system
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path/posix'
import { beforeAll, describe, expect, it } from 'vitest'
import { linkTargets, ROOT } from '../docs/markdown.ts'
import { emptyFolder, type Packed, pack } from './npm.ts'

// Tests the contents of the tarballs that npm would publish.

const ALWAYS = ['CHANGELOG.md', 'LICENSE', 'README.md', 'package.json']

interface Published {
  /** Whether each module has a file with its types. */
  readonly isTyped: boolean
  /** Other allowed files. */
  readonly besides: RegExp
  /** Maximum size of the tarball, slightly above its actual size. */
  readonly maxBytes: number
}

const PUBLISHED: Readonly<Record<string, Published>> = {
  slidegate: { isTyped: true, besides: /^$/, maxBytes: 315_000 },
  server: {
    isTyped: false,
    besides: new RegExp(
      `^(${[
        'bin/slidegate(-server)?\\.js',
        'lua/add-history\\.lua',
        'examples/slidegate\\.(json|yaml)',
        'page/(index\\.html|icon\\.svg|licenses\\.txt|assets/[\\w-]+\\.(js|css))',
        'proto/(README\\.md|licenses/[\\w-]+\\.txt|(envoy|udpa|validate|xds)/[\\w/]+\\.proto)',
        'schema/config\\.schema\\.json',
      ].join('|')})$`,
    ),
    maxBytes: 375_000,
  },
}

describe.each(Object.entries(PUBLISHED))('packages/%s', (name, { isTyped, besides, maxBytes }) => {
  const folder = join(ROOT, 'packages', name)
  const textOf = (path: string): string => readFileSync(join(folder, path), 'utf8')
  let packed: Packed
  beforeAll(async () => {
    packed = await pack(name, await emptyFolder())
  })

  it('contains the modules that its entry points load, and no others', () => {
    const { bin = {}, exports } = JSON.parse(textOf('package.json'))
    const targets = Object.values<string | { default?: string }>({ ...bin, ...exports })
    const entries = targets.flatMap((target) =>
      typeof target === 'string' ? target : (target.default ?? []),
    )
    const loaded = new Set(entries.map((path) => join(path)).filter((path) => path.endsWith('.js')))
    for (const path of loaded) {
      for (const [, imported] of textOf(path).matchAll(/(?:from|import\(|import) ?["'](\.[^"']+)["']/g)) {
        loaded.add(join(dirname(path), imported!))
      }
    }
    const modules = [...packed.files.keys()].filter(
      (path) => path.endsWith('.js') && !path.startsWith('page/'),
    )
    expect(modules.sort()).toEqual([...loaded].sort())
  })

  it(isTyped ? 'contains the types of every module' : 'contains no types', () => {
    const modules = readdirSync(join(folder, 'src'), { recursive: true, encoding: 'utf8' })
    const types = modules
      .filter((path) => /(?<!\.d)\.ts$/.test(path))
      .map((path) => `dist/${path.slice(0, -3)}.d.ts`)
    const found = [...packed.files.keys()].filter((path) => path.endsWith('.ts'))
    expect(found.sort()).toEqual(isTyped ? types.sort() : [])
  })

  it('contains the standard files and those that it reads at run time, and no others', () => {
    const others = [...packed.files.keys()].filter((path) => !path.startsWith('dist/'))
    expect(others).toEqual(expect.arrayContaining(ALWAYS))
    expect(others.filter((path) => !ALWAYS.includes(path) && !besides.test(path))).toEqual([])
  })

  it("refers to no source map that it doesn't contain", () => {
    const modules = [...packed.files.keys()].filter((path) => /^(dist|bin|page)\/.*\.js$/.test(path))
    expect(modules.filter((path) => textOf(path).includes('sourceMappingURL='))).toEqual([])
  })

  it('contains the license of the repository', () => {
    expect(textOf('LICENSE')).toBe(readFileSync(join(ROOT, 'LICENSE'), 'utf8'))
  })

  it('links only to files that it contains', () => {
    const pages = [...packed.files.keys()].filter((path) => path.endsWith('.md'))
    const dead = pages.flatMap((page) =>
      linkTargets(textOf(page))
        .filter((target) => !/^([a-z]+:|#)/.test(target))
        .map((target) => join(dirname(page), target.split('#')[0]!))
        .filter((path) => !packed.files.has(path)),
    )
    expect(dead).toEqual([])
  })

  it('stays within its size limit', () => {
    expect(packed.packedBytes).toBeLessThan(maxBytes)
    expect(packed.packedBytes).toBeGreaterThan(0.85 * maxBytes)
  })
})

describe('third-party code in slidegate-server', () => {
  const folder = join(ROOT, 'packages/server')

  it('comes with the licenses of all packages in the dashboard', () => {
    const notices = readFileSync(join(folder, 'page/licenses.txt'), 'utf8')
    const told = Array.from(notices.matchAll(/^(\S+) \d\S* \(([^)]+)\)$/gm), ([, name, licence]) => [
      name,
      licence,
    ])
    const page = readFileSync(join(ROOT, 'docs/dependencies.md'), 'utf8').split('\n## The dashboard\n')[1]!
    const rows = page.split('\n## ')[0]!.matchAll(/^\| `([^`]+)` \| ([^|]+) \|/gm)
    expect(told).toEqual(Array.from(rows, ([, name, licence]) => [name, licence!.trim()]))
  })

  it("includes the packages that the dashboard's source imports", () => {
    const notices = readFileSync(join(folder, 'page/licenses.txt'), 'utf8')
    const source = join(ROOT, 'packages/dashboard/src')
    const imported = readdirSync(source, { recursive: true, encoding: 'utf8' })
      .filter((path) => /\.tsx?$/.test(path))
      .flatMap((path) => [
        ...readFileSync(join(source, path), 'utf8').matchAll(/^import (?!type).*from '([^.'][^']*)'/gms),
      ])
      .map(([, name]) => /^(@[^/]+\/)?[^/]+/.exec(name!)![0])
      .filter((name) => name !== 'slidegate')
    expect(imported).toContain('preact')
    expect([...new Set(imported)].filter((name) => !notices.includes(`\n${name} `))).toEqual([])
  })

  it('comes with the licenses of the protobuf definitions', () => {
    const proto = readdirSync(join(folder, 'proto'), { withFileTypes: true })
      .filter((entry) => entry.isDirectory() && entry.name !== 'licenses')
      .map(({ name }) => name)
    const table = readFileSync(join(folder, 'proto/README.md'), 'utf8')
    for (const name of proto) {
      const project = new RegExp(`^\\|.*\`${name}/\`.*\\| \\S+/(\\S+) \\|`, 'm').exec(table)?.[1]
      expect(existsSync(join(folder, `proto/licenses/${project}.txt`)), name).toBe(true)
    }
  })
})
