import { parse, postprocess, preprocess } from 'micromark'
import { gfmTable } from 'micromark-extension-gfm-table'

/**
 * A piece of prose, such as a paragraph, a table cell or a message. `text` is as long as its source, so that offsets
 * match: markup becomes blanks, and code becomes `XXX`. An `opening` is the first paragraph of a docstring.
 * @typedef {'text' | 'heading' | 'title' | 'opening'} Kind
 * @typedef {{ start: number, text: string, kind: Kind }} Block
 */

const BLOCKS = new Set(['atxHeadingText', 'setextHeadingText', 'paragraph', 'tableContent'])
const HEADINGS = new Set(['atxHeading', 'setextHeading', 'tableHead'])
const HIDDEN = new Set(['autolink', 'definition', 'reference', 'resource'])
const CODE = new Set(['codeText', 'autolink'])
const COUNTED = new Set([...BLOCKS, ...HEADINGS, ...HIDDEN])
/** Comments may be indented, and `<T>` at the start of a line isn't HTML. */
const IN_COMMENTS = { disable: { null: ['codeIndented', 'htmlFlow'] } }

/**
 * Extracts the paragraphs, headings and table cells of Markdown, without code and link targets.
 * @param {string} text
 * @param {{ comment?: boolean }} [options] `comment`: the text is a comment
 * @returns {Block[]}
 */
export function proseOfMarkdown(text, { comment = false } = {}) {
  /** @type {Block[]} */
  const blocks = []
  /** @type {Set<string>} open elements. Elements of the same type don't nest. */
  const open = new Set()
  for (const [step, { type, start, end }] of tokens(text, comment)) {
    if (step === 'exit') {
      open.delete(type)
      continue
    }
    if (COUNTED.has(type)) open.add(type)
    if (BLOCKS.has(type))
      blocks.push({ start: start.offset, text: '', kind: isIn(open, HEADINGS) ? 'heading' : 'text' })
    const block = isIn(open, BLOCKS) ? blocks.at(-1) : undefined
    if (block && CODE.has(type)) append(block, start.offset, 'X'.repeat(end.offset - start.offset))
    if (block && type === 'data' && !isIn(open, HIDDEN))
      append(block, start.offset, text.slice(start.offset, end.offset))
  }
  return blocks
}

/** @param {string} text @param {boolean} comment */
function tokens(text, comment) {
  const parser = parse({ extensions: comment ? [gfmTable(), IN_COMMENTS] : [gfmTable()] })
  return postprocess(parser.document().write(preprocess()(text, undefined, true)))
}

/** @param {Set<string>} open @param {Set<string>} types */
const isIn = (open, types) => [...open].some((type) => types.has(type))

/** @param {Block} block @param {number} offset @param {string} text */
function append(block, offset, text) {
  block.text = block.text.padEnd(offset - block.start) + text
}
