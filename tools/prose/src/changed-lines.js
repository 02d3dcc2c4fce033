import { git } from './files.js'

const DIFF = ['diff', '-U0', '--relative', '--no-color', '--no-ext-diff', '--no-prefix']
/** The name of a file, or the place of a hunk. */
const HEADER = /^(?:\+\+\+ (.*?)\t?|@@ -\S+ \+(\d+)(?:,(\d+))? @@.*)$/gm

/**
 * Finds lines that changed since the counts were last committed.
 * @returns {(path: string, line: number) => boolean}
 */
export function changedLines() {
  const added = parseDiff(git('-c', 'core.quotePath=false', ...DIFF, base()))
  const untracked = new Set(git('ls-files', '-o', '--exclude-standard', '-z').split('\0'))
  return (path, line) => untracked.has(path) || (added.get(path)?.has(line) ?? false)
}

/** The commit that counted last: what has changed since then made a count rise. A shallow clone may not have it. */
function base() {
  return git('log', '-1', '--format=%H', '--', 'tools/prose/findings.json').trim() || 'HEAD'
}

/**
 * Returns the lines of each file that a diff adds.
 * @param {string} diff without context and prefixes
 * @returns {Map<string, Set<number>>}
 */
export function parseDiff(diff) {
  /** @type {Map<string, Set<number>>} */
  const added = new Map()
  let file = ''
  for (const [, path, start, count = '1'] of diff.matchAll(HEADER)) {
    if (path !== undefined) {
      file = path
      added.set(file, new Set())
    }
    for (let i = 0; start && i < Number(count); i++) added.get(file)?.add(Number(start) + i)
  }
  return added
}
