// Bundles a package into dist/: `node ../../scripts/bundle.js [entry ...]`, in its folder. Default: its exports.
//
// Node loads a few files faster than many. Files that entries share are at the top of dist/, each with the name of one of its
// modules.
import { readdirSync, readFileSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { rolldown } from 'rolldown'

const { exports } = JSON.parse(readFileSync('package.json', 'utf8'))
/** @type {string[]} */
const exported = Object.values(exports).flatMap(({ default: built }) => built ?? [])
const named = process.argv.slice(2)
const entries = named.length > 0 ? named : exported.map((path) => path.slice('./dist/'.length, -'.js'.length))

const bundle = await rolldown({
  input: Object.fromEntries(entries.map((entry) => [entry, `src/${entry}.ts`])),
  platform: 'node',
  // Dependencies stay imports.
  external: /^[^./]/,
  tsconfig: '../../tsconfig.base.json',
})
const { output } = await bundle.write({
  dir: 'dist',
  format: 'esm',
  entryFileNames: '[name].js',
  chunkFileNames: '[name].js',
  minifyInternalExports: false,
  comments: { legal: false, jsdoc: false, annotation: true },
})

const written = new Set(output.map(({ fileName }) => fileName))
for (const file of readdirSync('dist', { recursive: true, encoding: 'utf8' })) {
  if (file.endsWith('.js') && !written.has(file)) rmSync(join('dist', file))
}
