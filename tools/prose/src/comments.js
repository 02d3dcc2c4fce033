import { proseOfMarkdown } from './markdown.js'

/** @typedef {import('./markdown.js').Block} Block */
/** @typedef {{ start: number, end: number }} Span */

const MARKERS = /^[ \t]*(?:\/\*+|\*+\/|\*|\/\/+|--\[\[|--+|#+)|\*+\/$|\]\]$/gm
const TYPE = /\s*\{(?:[^{}]|\{(?:[^{}]|\{[^{}]*\})*\})*\}/
const TAG = new RegExp(
  `@(?:param|property|template|typedef)\\b(?:${TYPE.source})?[^\\S\\n]*[\\w.[\\]=]*|@[a-z]\\w*(?:${TYPE.source})?`,
  'g',
)
const LINK = /\{@\w+ [^}]*\}/g
const DIRECTIVE = /^[ \t]*(?:biome-ignore|@ts-|shellcheck|luacheck|!)[^\n:]*/gm

/**
 * Extracts the prose of comments. Line comments on adjacent lines form one text.
 * @param {string} text
 * @param {Span[]} comments in order
 * @returns {Block[]}
 */
export function proseOfComments(text, comments) {
  return groups(text, comments).flatMap(({ start, end }) => {
    const isDocstring = text.startsWith('/**', start)
    return proseOfMarkdown(bare(text.slice(start, end)), { comment: true }).map((block, index) => ({
      ...block,
      start: block.start + start,
      kind: isDocstring && index === 0 ? 'opening' : block.kind,
    }))
  })
}

/**
 * Replaces everything except the prose with blanks. A tag becomes a list marker, which ends the text before it.
 * @param {string} comment
 */
function bare(comment) {
  return comment
    .replace(MARKERS, blank)
    .replace(LINK, (link) => 'X'.repeat(link.length))
    .replace(DIRECTIVE, blank)
    .replace(TAG, (tag) => `-${blank(tag.slice(1))}`)
}

/** @param {string} text @param {Span[]} comments */
function groups(text, comments) {
  /** @type {Span[]} */
  const found = []
  for (const { start, end } of comments) {
    const last = found.at(-1)
    if (last && continues(text, last, start)) last.end = end
    else found.push({ start, end })
  }
  return found
}

/** @param {string} text @param {Span} last @param {number} start */
function continues(text, last, start) {
  const isBlock = [last.start, start].some((each) => /^(?:\/\*|--\[\[)/.test(text.slice(each, each + 4)))
  const lineStart = text.lastIndexOf('\n', last.start) + 1
  return (
    !isBlock && !text.slice(lineStart, last.start).trim() && /^\r?\n[ \t]*$/.test(text.slice(last.end, start))
  )
}

/** @param {string} text */
const blank = (text) => text.replace(/[^\n]/g, ' ')
