import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import preact from '@preact/preset-vite'
import { defineConfig, type Plugin } from 'vite'

/** Licenses of all packages that the dashboard and its worker contain. */
const licences = new Map<string, string>()

/** Collects licenses. Vite's own option misses the worker, which is built before the page. */
const collected = (isPage: boolean): Plugin => ({
  name: 'licences',
  generateBundle(_, bundle) {
    const chunks = Object.values(bundle).filter((each) => each.type === 'chunk')
    for (const path of chunks.flatMap(({ modules }) => Object.keys(modules))) {
      const folder = /^.*\/node_modules\/(@[^/]+\/)?[^/]+(?=\/)/.exec(path)?.[0]
      if (folder !== undefined) licences.set(folder, licenceOf(folder))
    }
    if (!isPage) return
    const source = [...licences.values()].sort().join('\n\n')
    this.emitFile({ type: 'asset', fileName: 'licenses.txt', source: `${source}\n` })
  },
})

function licenceOf(folder: string): string {
  const { name, version, license } = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8'))
  const file = readdirSync(folder).find((each) => /^licen[cs]e/i.test(each))
  if (file === undefined && license !== 'Unlicense') throw new Error(`${folder} has no license file`)
  const text =
    file === undefined ? 'Dedicated to the public domain.' : readFileSync(join(folder, file), 'utf8')
  return `${name} ${version} (${license})\n\n${text.trim()}`
}

/** Builds static files with relative addresses, so that they work below any path. */
export default defineConfig({
  base: './',
  plugins: [preact(), collected(true)],
  worker: { format: 'es', plugins: () => [collected(false)] },
  build: {
    outDir: '../server/page',
    emptyOutDir: true,
    target: 'es2022',
    // Nothing is inlined, because the page's policy forbids inline code.
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
  },
})
