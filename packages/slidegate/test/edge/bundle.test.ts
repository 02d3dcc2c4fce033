// tier: system
import { readFile } from 'node:fs/promises'
import { fileURLToPath } from 'node:url'
import { describe, expect, it } from 'vitest'
import { bundleOf, freeNamesOf, PEERS } from './bundle.ts'

const PACKAGE = new URL('../../package.json', import.meta.url)

/** What is for servers on Node: there, all of Node may be used. */
const NODES_OWN = [
  './redis',
  './testing',
  './express',
  './fastify',
  './koa',
  './nest',
  './node',
  './ws',
  './socket.io',
]

const { exports } = JSON.parse(await readFile(PACKAGE, 'utf8')) as {
  exports: Record<string, { default?: string }>
}

/** The modules by which the package is imported where there is no Node. */
const entries = Object.entries(exports).flatMap(([name, { default: built }]): [string, string][] => {
  if (built === undefined || NODES_OWN.includes(name)) return []
  const source = built.replace('/dist/', '/src/').replace(/\.js$/, '.ts')
  return [[name.replace('.', 'slidegate'), fileURLToPath(new URL(source, PACKAGE))]]
})

describe('bundled for where there is no Node,', () => {
  it('there is the core, and what works with requests of the Web', () => {
    expect(entries.map(([name]) => name)).toEqual(expect.arrayContaining(['slidegate', 'slidegate/http']))
  })

  it.each(entries)('%s imports nothing, and uses no name of Node that may be missing', async (name, path) => {
    const bundle = await bundleOf(`export * from ${JSON.stringify(path)}`)
    const peers = name === 'slidegate/opentelemetry' ? PEERS : []
    expect(new Set(bundle.imports.map((imported) => imported.path))).toEqual(new Set(peers))
    expect(freeNamesOf(bundle)).toEqual([])
  })

  it('it would be found out', async () => {
    await expect(bundleOf("export { isIPv4 } from 'node:net'")).rejects.toThrow('node:net')
    const names = freeNamesOf(
      await bundleOf('export const a = typeof Buffer, b = process.env, c = globalThis.setImmediate'),
    )
    expect(names).toEqual(['process', 'Buffer'])
  })
})
