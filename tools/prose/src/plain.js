import { proseOfComments } from './comments.js'
import { proseOfMessage } from './message.js'

/** @typedef {import('./markdown.js').Block} Block */

const STRINGS = /"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*'/
const HASH = /(?<=^|\s)#.*/
const LUA = /--\[\[[\s\S]*?\]\]|--.*|\[\[[\s\S]*?\]\]/
const CSS = /\/\*[\s\S]*?\*\//
const C = /\/\*[\s\S]*?\*\/|\/\/.*/

/** Comment syntax of languages that have no parser here. @type {Record<string, RegExp>} */
export const COMMENTS = {
  '.lua': LUA,
  '.css': CSS,
  '.c': C,
  ...Object.fromEntries(['.yaml', '.yml', '.sh', '.conf', '.service', ''].map((name) => [name, HASH])),
}

/**
 * Extracts the comments and strings of a file. In tests, only comments.
 * @param {string} text
 * @param {RegExp} comment
 * @param {{ test: boolean }} options
 * @returns {Block[]}
 */
export function proseOfPlain(text, comment, { test }) {
  const found = [...text.matchAll(new RegExp(`${comment.source}|${STRINGS.source}`, 'gm'))].map((match) => ({
    start: match.index,
    end: match.index + match[0].length,
    prose: true,
    quoted: /^["'[]/.test(match[0]),
  }))
  return [
    ...proseOfComments(
      text,
      found.filter(({ quoted }) => !quoted),
    ),
    ...(test ? [] : found.filter(({ quoted }) => quoted).flatMap((piece) => proseOfMessage(text, [piece]))),
  ]
}
