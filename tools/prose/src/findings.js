import { matchesIn } from './check.js'
import { files, proseOf, read } from './files.js'

/** @typedef {{ path: string, line: number, column: number, rule: string, excerpt: string, instead: string }} Finding */

/**
 * Lints all files, or those below a path.
 * @param {string} [prefix]
 * @returns {{ findings: Finding[], unreadable: string[] }} `unreadable`: files with syntax errors
 */
export function lintAll(prefix = '') {
  /** @type {Finding[]} */
  const findings = []
  /** @type {string[]} */
  const unreadable = []
  for (const path of files().filter((each) => each.startsWith(prefix))) {
    try {
      findings.push(...findingsIn(path, read(path)))
    } catch (error) {
      unreadable.push(`${path}: ${error instanceof Error ? error.message : error}`)
    }
  }
  return { findings, unreadable }
}

/**
 * Lints one text.
 * @param {string} path sets the language
 * @param {string} text
 * @returns {Finding[]}
 */
export function findingsIn(path, text) {
  const lineStarts = [0, ...[...text.matchAll(/\n/g)].map(({ index }) => index + 1)]
  return matchesIn(proseOf(path, text), text)
    .sort((a, b) => a.offset - b.offset)
    .map(({ offset, ...match }) => {
      const line = lineStarts.findLastIndex((start) => start <= offset)
      return { path, line: line + 1, column: offset - (lineStarts[line] ?? 0) + 1, ...match }
    })
}
