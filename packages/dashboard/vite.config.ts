import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import preact from '@preact/preset-vite'
import { defineConfig, type Plugin } from 'vite'

/** The licences of all that the page and its worker are made of: a file beside them. */
const licences = new Map<string, string>()

/** Vite has an option for that, which overlooks the worker; that is built before the page, so the page's has both. */
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
  if (file === undefined && license !== 'Unlicense') throw new Error(`${folder} has no licence to be shipped`)
  const text =
    file === undefined ? 'Dedicated to the public domain.' : readFileSync(join(folder, file), 'utf8')
  return `${name} ${version} (${license})\n\n${text.trim()}`
}

/** The page is static files of the service: relative addresses, so that it may stand below any path. */
export default defineConfig({
  base: './',
  plugins: [preact(), collected(true)],
  worker: { format: 'es', plugins: () => [collected(false)] },
  build: {
    outDir: '../server/page',
    emptyOutDir: true,
    target: 'es2022',
    // Nothing inline: the policy of the page forbids it.
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
  },
})
