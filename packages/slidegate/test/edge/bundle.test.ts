// tier: system
import { readFile } from 'node:fs/promises'
import { describe, expect, it } from 'vitest'
import { bundleOf, freeNamesOf, PEERS } from './bundle.ts'

const PACKAGE = new URL('../../package.json', import.meta.url)

/** Entry points for servers on Node, which may use any Node module. */
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

/** The entry points that work without Node. */
const entries = Object.entries(exports)
  .filter(([name, { default: built }]) => built !== undefined && !NODES_OWN.includes(name))
  .map(([name]) => name.replace('.', 'slidegate'))

describe('bundles for runtimes other than Node', () => {
  it('include the core and the entry points for Web requests', () => {
    expect(entries).toEqual(expect.arrayContaining(['slidegate', 'slidegate/http']))
  })

  it.each(entries)('import nothing and use no Node global that may be missing: %s', async (name) => {
    const bundle = await bundleOf(`export * from '${name}'`)
    const peers = name === 'slidegate/opentelemetry' ? PEERS : []
    expect(new Set(bundle.imports.map((imported) => imported.path))).toEqual(new Set(peers))
    expect(freeNamesOf(bundle)).toEqual([])
  })

  // The package lists the files that matter without their names, in sideEffects.
  it('register calendarWindow if they import slidegate/calendar without names', async () => {
    const { code } = await bundleOf("import 'slidegate/calendar'; export { limitOf } from 'slidegate'")
    const { limitOf } = await import(`data:text/javascript,${encodeURIComponent(code)}`)
    expect(() => limitOf({ kind: 'calendarWindow', limit: 1, unit: 'day', timeZone: 'UTC' })).not.toThrow()
  })

  it('fail this check if they import a Node module or use a Node global', async () => {
    await expect(bundleOf("export { isIPv4 } from 'node:net'")).rejects.toThrow('node:net')
    const names = freeNamesOf(
      await bundleOf('export const a = typeof Buffer, b = process.env, c = globalThis.setImmediate'),
    )
    expect(names).toEqual(['process', 'Buffer'])
  })
})
