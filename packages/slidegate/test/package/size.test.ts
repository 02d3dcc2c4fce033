// tier: system
import { existsSync, readdirSync, readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { gzipSync } from 'node:zlib'
import { build } from 'esbuild'
import { describe, expect, it } from 'vitest'
import { ROOT } from '../docs/markdown.ts'
import { importsOf, manifestOf } from './npm.ts'

// The sizes in docs/dependencies.md are the budget: actual sizes must not be larger, and not much smaller.

const manifest = await manifestOf('slidegate')
const page = readFileSync(join(ROOT, 'docs/dependencies.md'), 'utf8')
  .split('\n## Sizes\n')[1]!
  .split('\n## ')[0]!
const told = new Map(
  Array.from(page.matchAll(/^\| `([^|]+)` \| (\d+) \| (\d+) \|$/gm), ([, imported, minified, gzipped]) => [
    imported!.split('`, `').join(),
    [Number(minified), Number(gzipped)],
  ]),
)

/** Returns the size of the entry points without peer dependencies, in kB: minified and gzipped. */
async function sizesOf(imports: readonly string[]): Promise<[minified: number, gzipped: number]> {
  const { outputFiles } = await build({
    stdin: { contents: imports.map((name) => `export * from '${name}'`).join('\n'), resolveDir: ROOT },
    external: Object.keys(manifest.peerDependencies),
    ...{ bundle: true, minify: true, write: false, format: 'esm', platform: 'node', target: 'es2022' },
  })
  const { contents } = outputFiles[0]!
  return [contents.length / 1000, gzipSync(contents, { level: 9 }).length / 1000]
}

function bytesIn(path: string): number {
  const stats = statSync(path)
  if (!stats.isDirectory()) return stats.size
  return readdirSync(path).reduce((sum, name) => sum + bytesIn(join(path, name)), 0)
}

describe('the sizes in docs/dependencies.md', () => {
  it('cover all entry points', () => {
    expect([...told.keys()].flatMap((imports) => imports.split(','))).toEqual(
      expect.arrayContaining(importsOf(manifest)),
    )
  })

  it.each([...told])('%s', async (imports, bounds) => {
    const sizes = await sizesOf(imports.split(','))
    for (const [i, size] of sizes.entries()) {
      expect(size, `${sizes.map((each) => each.toFixed(1))} kB`).toBeLessThanOrEqual(bounds[i]!)
      expect(size, `${sizes.map((each) => each.toFixed(1))} kB`).toBeGreaterThan(bounds[i]! * 0.9 - 1)
    }
  })
})

it('an installation takes at most 1.5 MB, including dependencies', () => {
  const folders = Object.keys(manifest.dependencies).map((name) =>
    ['packages/slidegate/node_modules', 'node_modules'].map((at) => join(ROOT, at, name)).find(existsSync),
  )
  const own = ['dist', 'README.md', 'CHANGELOG.md', 'LICENSE'].map((name) =>
    join(ROOT, 'packages/slidegate', name),
  )
  const bytes = [...own, ...folders].reduce((sum, path) => sum + bytesIn(path!), 0)
  expect(bytes / 1e6).toBeLessThanOrEqual(1.5)
})

it('compiled code has no comments except names of modules, and its types have comments', () => {
  const modules = readdirSync(join(ROOT, 'packages/slidegate/dist'), { recursive: true, encoding: 'utf8' })
  const starts = (path: string) =>
    /^\s*\/(\*|\/(?! (src|\\0rolldown)\/))/m.test(
      readFileSync(join(ROOT, 'packages/slidegate/dist', path), 'utf8'),
    )
  expect(modules.filter((path) => path.endsWith('.js') && starts(path))).toEqual([])
  expect(modules.filter((path) => path.endsWith('.d.ts') && starts(path)).length).toBeGreaterThan(100)
})
