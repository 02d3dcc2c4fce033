// Counts the words of Markdown files, per folder and in total: `npm run words`. With a folder, per page: `npm run words docs/ideas`.

import { execFileSync } from 'node:child_process'
import { existsSync, readFileSync } from 'node:fs'
import { dirname, join, relative } from 'node:path'
import { fileURLToPath } from 'node:url'

const ROOT = dirname(dirname(fileURLToPath(import.meta.url)))

/** The page that the bench writes. */
const SKIPPED = ['docs/benchmarks/README.md']

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const [folder] = process.argv.slice(2).map((path) => relative(ROOT, path))
  const pages = markdownFiles().filter((path) => folder === undefined || path.startsWith(`${folder}/`))
  const counts = pages.map(
    (path) => /** @type {const} */ ([path, wordsIn(readFileSync(join(ROOT, path), 'utf8'))]),
  )
  console.log(tableOf(counts, folder === undefined ? dirname : (path) => path))
}

/** Returns the paths of all Markdown files that Git doesn't ignore, relative to the root. */
function markdownFiles() {
  const args = ['ls-files', '-co', '--exclude-standard', '--deduplicate', '*.md']
  const paths = execFileSync('git', args, { cwd: ROOT, encoding: 'utf8' }).trim().split('\n')
  return paths.filter((path) => !SKIPPED.includes(path) && existsSync(join(ROOT, path)))
}

/**
 * Counts words outside code blocks, comments, link targets and tables of figures.
 *
 * @param {string} markdown
 * @returns {number}
 */
export function wordsIn(markdown) {
  const text = markdown
    .replace(/^---\n[\s\S]*?\n---\n/, '')
    .replace(/^( *)(`{3,}|~{3,}).*\n[\s\S]*?^\1\2$/gm, '')
    .replace(/<!--[\s\S]*?-->/g, '')
    .replace(/^ *\|.*\n(?: *\|.*(?:\n|$))+/gm, (table) => (hasFigures(table) ? '' : table))
    .replace(/\]\([^)\s]+\)/g, ']')
  return text.split(/[\s|]+/).filter((word) => /[\p{L}\p{N}]/u.test(word)).length
}

/**
 * Returns whether a table's cells are mostly numbers.
 *
 * @param {string} table
 */
function hasFigures(table) {
  const cells = table
    .trim()
    .split('\n')
    .slice(2)
    .flatMap((row) => row.split('|').map((cell) => cell.trim()))
    .filter((cell) => cell !== '')
  return cells.filter((cell) => /^\W*\d/.test(cell) && cell.split(' ').length <= 4).length >= cells.length / 2
}

/**
 * @param {readonly (readonly [path: string, words: number])[]} counts
 * @param {(path: string) => string} groupOf
 * @returns {string} a line per group, and one for the total
 */
export function tableOf(counts, groupOf) {
  /** @type {Map<string, number>} */
  const groups = new Map()
  for (const [path, words] of counts) groups.set(groupOf(path), (groups.get(groupOf(path)) ?? 0) + words)
  const total = counts.reduce((sum, [, words]) => sum + words, 0)
  const lines = /** @type {const} */ ([...[...groups].sort(([a], [b]) => (a < b ? -1 : 1)), ['total', total]])
  return lines.map(([name, words]) => `${`${words}`.padStart(7)}  ${name}`).join('\n')
}
