/** @typedef {import('./markdown.js').Kind} Kind */

const END = /(?<!\b(?:e\.g|i\.e|vs|etc|approx|cf)\.)(?<=[.!?…:]["'”’)\]]*)\s+(?=["'“‘([]*[\p{Lu}\d])/gu

/**
 * Splits a block into sentences. A capital letter after a colon also starts one.
 * @param {{ text: string, kind: Kind }} block
 * @returns {{ offset: number, text: string, kind: Kind }[]}
 */
export function sentencesOf({ text, kind }) {
  const ends = [...text.matchAll(END)].map(({ index, 0: blanks }) => ({
    end: index,
    next: index + blanks.length,
  }))
  let start = text.length - text.trimStart().length
  return [...ends, { end: text.trimEnd().length, next: 0 }].flatMap(({ end, next }, index) => {
    const sentence = { offset: start, text: text.slice(start, end), kind: sentenceKind(kind, index) }
    start = next
    return sentence.text ? [sentence] : []
  })
}

/** Only the first sentence of a docstring is its opening. @param {Kind} kind @param {number} index @returns {Kind} */
const sentenceKind = (kind, index) => (kind === 'opening' && index > 0 ? 'text' : kind)
