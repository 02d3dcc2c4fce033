import { readFileSync } from 'node:fs'
import { printable } from '../text.ts'
import type { ConfigProblem } from './problem.ts'

/** Columns of a line that are shown. */
const WIDTH = 100

/** What may be a secret: what these names stand before, and users and passwords in URLs. */
const SECRETS = [/(?<=\b(?:token|sha256|hashKeys|secret|url)\b["']?\s*:\s*)\S.*$/, /(?<=:\/\/)[^\s/]+(?=@)/g]

/** The line that is wrong, with a caret under the place; nothing where it is gone. */
export function quoteOf({ file, line, column }: ConfigProblem): string[] {
  const text = lineIn(file, line)
  if (text === undefined || text.trim() === '') return []
  const from = column > WIDTH ? column - WIDTH / 2 : 0
  const number = String(line)
  const shown = SECRETS.reduce((masked, secret) => masked.replace(secret, stars), text).slice(
    from,
    from + WIDTH,
  )
  // One character each, so that the caret stands where it should.
  const plain = Array.from(shown, (character) => (printable(character) === character ? character : ' ')).join(
    '',
  )
  return [`  ${number} | ${plain}`, `  ${' '.repeat(number.length)} | ${' '.repeat(column - 1 - from)}^`]
}

function stars(text: string): string {
  return '*'.repeat(text.length)
}

function lineIn(file: string, line: number): string | undefined {
  try {
    return readFileSync(file, 'utf8')
      .replace(/^\uFEFF/, '')
      .split(/\r?\n/)[line - 1]
  } catch {
    return undefined
  }
}
