import { PATTERNS } from '../patterns.js'
import { sentencesOf } from './sentences.js'

/** @typedef {import('./markdown.js').Block} Block */
/** @typedef {import('../patterns.js').Pattern} Pattern */
/** @typedef {{ rule: string, offset: number, excerpt: string, instead: string }} Match */

const BEFORE = 30
const LENGTH = 90

const COMPILED = PATTERNS.map((pattern) => ({
  ...pattern,
  regex: new RegExp(pattern.pattern.source.replaceAll(' ', '\\s+'), 'gisu'),
}))

/**
 * Finds matches of the patterns.
 * @param {readonly Block[]} blocks
 * @param {string} source text of the blocks
 * @returns {Match[]}
 */
export function matchesIn(blocks, source) {
  return blocks.flatMap((block) =>
    sentencesOf(block).flatMap(({ offset, text, kind }) => {
      const start = block.start + offset
      const sentence = { start, end: start + text.length }
      return COMPILED.filter(({ kinds }) => kinds?.includes(kind) ?? true).flatMap(({ id, regex, instead }) =>
        [...text.matchAll(regex)].map(({ index }) => ({
          rule: id,
          offset: start + index,
          excerpt: excerpt(source, sentence, start + index),
          instead,
        })),
      )
    }),
  )
}

/**
 * Returns the words around a match.
 * @param {string} source
 * @param {{ start: number, end: number }} sentence
 * @param {number} match
 */
function excerpt(source, { start, end }, match) {
  const from = Math.max(start, match - BEFORE)
  const to = Math.min(end, from + LENGTH)
  const text = source.slice(from, to).replace(/\s*\n\s*(?:\/\/|--|[*#>])?\s*|\s+/g, ' ')
  return `${from > start ? '…' : ''}${text.trim()}${to < end ? '…' : ''}`
}
