import { execFileSync } from 'node:child_process'
import { lstatSync, readFileSync } from 'node:fs'
import { extname, join } from 'node:path'
import { proseOfMarkdown } from './markdown.js'
import { COMMENTS, proseOfPlain } from './plain.js'
import { proseOfScript } from './script.js'

/** @typedef {import('./markdown.js').Block} Block */

export const ROOT = join(import.meta.dirname, '../../..')

/** Third-party and generated files, and the patterns with their bad examples. */
const SKIPPED = [
  /(?:^|\/)(?:node_modules|dist|fixtures|proto)\//,
  /\.generated\.|(?:^|\/)LICENSE$/,
  /^docs\/benchmarks\/README\.md$/,
  /^tools\/prose\/(?:patterns\.js$|test\/)/,
]
const TEST = /(?:^|\/)test\/|\.test\.[jt]sx?$/
const SCRIPT = /\.[cm]?[jt]sx?$/

/** Returns the paths of files with prose, relative to the root. */
export function files() {
  const paths = new Set(git('ls-files', '-co', '--exclude-standard', '-z').split('\0'))
  return [...paths].filter((path) => isProse(path) && isFile(path)).sort()
}

/** @param {string} path */
function isProse(path) {
  const isKnown = path.endsWith('.md') || SCRIPT.test(path) || commentOf(path) !== undefined
  return isKnown && !SKIPPED.some((each) => each.test(path))
}

/** Tracked paths may be links or deleted files. @param {string} path */
const isFile = (path) => lstatSync(join(ROOT, path), { throwIfNoEntry: false })?.isFile() ?? false

/** @param {string} path */
export const read = (path) => readFileSync(join(ROOT, path), 'utf8').replace(/^\uFEFF/, '')

/** @param {string} path @param {string} text @returns {Block[]} */
export function proseOf(path, text) {
  const test = TEST.test(path)
  if (path.endsWith('.md')) return proseOfMarkdown(text)
  if (SCRIPT.test(path)) return proseOfScript(text, { test, jsx: !/\.[cm]?ts$/.test(path) })
  return proseOfPlain(text, commentOf(path) ?? /$^/, { test })
}

/** @param {string} path */
const commentOf = (path) => COMMENTS[extname(path)]

/** Runs git in the root. @param {...string} words */
function git(...words) {
  return execFileSync('git', words, {
    cwd: ROOT,
    encoding: 'utf8',
    maxBuffer: 2 ** 28,
    stdio: ['ignore', 'pipe', 'pipe'],
  })
}
