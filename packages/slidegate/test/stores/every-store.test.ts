import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import packageJson from '../../package.json' with { type: 'json' }

// Every public store or adapter must run the suite of its kind. See the checklists in CONTRIBUTING.md.

const textOf = (file: string) => readFileSync(join(import.meta.dirname, file), 'utf8')

/** The file in which each store runs `storeConformance`. */
const STORES: Record<string, string> = {
  memoryStore: 'conformance.test.ts',
  redisStore: 'conformance.test.ts',
  serviceStore: '../remote/conformance.test.ts',
}

/** Not a store. It serves one to other processes. */
const OTHERS = ['serveStore']

const sources = Object.values(packageJson.exports).flatMap((target) =>
  typeof target === 'string' ? [] : [target.default.replace('./dist/', '../../src/').replace(/\.js$/, '.ts')],
)

it('every store runs the conformance suite', async () => {
  const modules = await Promise.all(sources.map((source) => import(source)))
  const names = modules.flatMap(Object.keys).filter((name) => /^[a-z]\w*Store$/.test(name))
  expect(names.filter((name) => !OTHERS.includes(name)).sort()).toEqual(Object.keys(STORES).sort())
  for (const file of Object.values(STORES))
    expect(textOf(file)).toMatch(/of storeConformance|conforms(By)?\(/)
})

describe('every adapter runs the suite for adapters or the suite for messages', () => {
  const tests = readdirSync(join(import.meta.dirname, '../adapters'))
    .filter((file) => file.endsWith('.test.ts'))
    .map((file) => textOf(`../adapters/${file}`))
  const adapters = sources.filter((source) => source.includes('/adapters/'))

  it.each(adapters)('%s runs one of them', (source) => {
    const module = source.replace('../../src/', '')
    const held = tests.filter(
      (text) => text.includes(module) && /^ *(await )?(adapterSuite|messageSuite)[(<]/m.test(text),
    )
    expect(held).not.toEqual([])
  })
})
