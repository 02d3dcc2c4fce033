/** @typedef {import('./markdown.js').Block} Block */
/** @typedef {import('./markdown.js').Kind} Kind */
/**
 * A part of a message: an expression, or prose that may be in quotes. @typedef {{ start: number, end: number, prose: boolean,
 * quoted?: boolean }} Piece
 */

const THREE_WORDS = /(?:\p{L}[\p{L}'’-]*[,:;]?\s+){2}\p{L}/u

/**
 * Returns the text of a message, with expressions as `XXX`. Skips texts of fewer than three words, except titles.
 * @param {string} source
 * @param {Piece[]} pieces in order
 * @param {Kind} [kind]
 * @returns {Block[]}
 */
export function proseOfMessage(source, pieces, kind = 'text') {
  const start = pieces[0]?.start ?? 0
  let text = ''
  for (const { start: from, end, prose, quoted } of pieces) {
    const inner = quoted ? ` ${source.slice(from + 1, end - 1)} ` : source.slice(from, end)
    text = text.padEnd(from - start) + (prose ? unescaped(inner) : 'X'.repeat(end - from))
  }
  const isProse = pieces.some(({ prose }) => prose) && (kind !== 'text' || THREE_WORDS.test(text))
  return isProse ? [{ start, text, kind }] : []
}

/** @param {string} text */
function unescaped(text) {
  return text
    .replace(/\\[nrt]/g, '  ')
    .replace(/\\(.)/g, ' $1')
    .replace(/`[^`\n]+`/g, (code) => 'X'.repeat(code.length))
}
