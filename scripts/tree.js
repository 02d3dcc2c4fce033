// Prints folders as a tree, each file with its description: `npm run tree packages/server/src/http`.

import { readdirSync, readFileSync } from 'node:fs'
import { dirname, join, relative } from 'node:path'
import { fileURLToPath } from 'node:url'

const ROOT = dirname(dirname(fileURLToPath(import.meta.url)))

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const packages = readdirSync(join(ROOT, 'packages')).map((name) => `packages/${name}/src`)
  const named = process.argv.slice(2).map((path) => relative(ROOT, path))
  console.log((named.length > 0 ? named : packages).map(treeOf).join('\n\n'))
}

/**
 * @param {string} folder a path from the root of the repository
 * @returns {string} a line per folder and file
 */
export function treeOf(folder) {
  const lines = linesOf(folder.replace(/\/$/, ''), '', foldersIn('ARCHITECTURE.md'))
  const width = Math.max(...lines.slice(1).map(([name]) => name.length))
  return lines.map(([name, text]) => `${name.padEnd(width)}  ${text}`.trimEnd()).join('\n')
}

/**
 * @param {string} folder
 * @param {string} indent
 * @param {ReadonlyMap<string, string>} described
 * @returns {(readonly [name: string, text: string])[]}
 */
function linesOf(folder, indent, described) {
  const entries = readdirSync(join(ROOT, folder), { withFileTypes: true })
    .filter(({ name }) => !/^(node_modules|dist)$|^\.|\.generated\.ts$/.test(name))
    .sort((a, b) => Number(a.isDirectory()) - Number(b.isDirectory()) || (a.name < b.name ? -1 : 1))
  const name = indent === '' ? folder : folder.slice(folder.lastIndexOf('/') + 1)
  const inner = `${indent}  `
  return [
    [`${indent}${name}/`, described.get(folder) ?? ''],
    ...entries.flatMap((entry) => {
      const path = `${folder}/${entry.name}`
      if (entry.isDirectory()) return linesOf(path, inner, described)
      return [/** @type {const} */ ([inner + entry.name, descriptionOf(readText(path))])]
    }),
  ]
}

/**
 * Returns the descriptions of folders in the indented list of a page. Folder names end in a slash.
 *
 * @param {string} page
 * @returns {ReadonlyMap<string, string>}
 */
export function foldersIn(page) {
  const found = new Map()
  /** @type {string[]} */
  const above = []
  for (const line of /^```text\n([\s\S]*?)^```$/m.exec(readText(page))?.[1]?.split('\n') ?? []) {
    const [, indent = '', names, text = ''] = /^( *)((?:\S+\/ +)*\S+\/)(?: +(.*))?$/.exec(line) ?? []
    if (names === undefined) continue
    above.length = indent.length / 2
    const paths = names.split(/ +/).map((name) => above.join('') + name)
    for (const path of paths) found.set(path.slice(0, -1), text)
    above.push(names)
  }
  return found
}

/**
 * Returns the first sentence of the comment at the start of a file. Empty without a comment.
 *
 * @param {string} text
 * @returns {string}
 */
export function descriptionOf(text) {
  const code = text.replace(/^(#!|\/\/ tier: ).*\n/, '').trimStart()
  const comment = /^\/\*.*?\*\/|^((\/\/|--|#).*?(\n|$))+/s.exec(code)?.[0] ?? ''
  const words = comment.replace(/^ *(\/\*+|\*\/|\*|\/\/|--|#)|\*\/$/gm, '').trim()
  const [paragraph = ''] = words.split(/\n\s*(?:\n|@|- )/)
  const line = paragraph.replace(/\n */g, ' ')
  return /^.*?(?=\.(\s|$))/.exec(line)?.[0] ?? line
}

/** @param {string} path @returns {string} */
function readText(path) {
  return readFileSync(join(ROOT, path), 'utf8')
}
