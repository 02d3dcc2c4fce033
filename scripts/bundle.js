// Bundles a package into dist/: `node ../../scripts/bundle.js [entry ...]`, in its folder. Default: its exports.
//
// Node loads a few files faster than many. Files that entries share are at the top of dist/, each with the name of one of its
// modules.
import { readFileSync } from 'node:fs'
import { basename } from 'node:path'
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
await bundle.write({
  dir: 'dist',
  cleanDir: true,
  format: 'esm',
  entryFileNames: '[name].js',
  chunkFileNames: '[name].js',
  minifyInternalExports: false,
  comments: { legal: false, jsdoc: false, annotation: true },
  codeSplitting: {
    groups: [{ debugName: 'packages', test: importsOnlyPackages, name: (path) => basename(path, '.ts') }],
  },
})

/**
 * Other bundlers can omit such a file, with its package. In a file with others, the import would stay.
 *
 * @param {string} path
 */
function importsOnlyPackages(path) {
  // Only apps bundle packages, so only exports need such files.
  if (named.length > 0) return false
  const text = readFileSync(path, 'utf8')
  return / from '/.test(text) && !/ from '(\.|node:)/.test(text)
}
