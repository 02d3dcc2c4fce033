import { parse } from '@babel/parser'
import { proseOfComments } from './comments.js'
import { proseOfMessage } from './message.js'

/** @typedef {import('./markdown.js').Block} Block */
/** @typedef {import('./message.js').Piece} Piece */
/** @typedef {import('@babel/types').Node} Node */
/** @typedef {{ pieces: Piece[], kind: import('./markdown.js').Kind }} Message */

const GROUPS = new Set(['describe', 'suite'])
const TITLED = new Set(['it', 'test', ...GROUPS])
const MESSAGES = new Set([
  'StringLiteral',
  'TemplateLiteral',
  'BinaryExpression',
  'JSXElement',
  'JSXFragment',
])
const NO_MESSAGE = new Set(['source', 'key', 'extra', 'loc', 'errors', 'comments'])

/**
 * Extracts the comments and messages of TypeScript or JavaScript. In tests, only comments and titles.
 * @param {string} text
 * @param {{ test: boolean, jsx: boolean }} options
 * @returns {Block[]}
 */
export function proseOfScript(text, { test, jsx }) {
  const file = parse(text, {
    sourceType: 'unambiguous',
    attachComment: false,
    errorRecovery: true,
    allowReturnOutsideFunction: true,
    plugins: jsx ? ['typescript', 'decorators', 'jsx'] : ['typescript', 'decorators'],
  })
  const comments = (file.comments ?? []).map(spanOf)
  const messages = test ? titles(file.program) : literals(file.program)
  return [
    ...proseOfComments(text, comments),
    ...messages.flatMap(({ pieces, kind }) => proseOfMessage(text, pieces, kind)),
  ]
}

/** @param {Node} program @returns {Message[]} */
function titles(program) {
  return nodes(program).flatMap((node) => {
    const name = node.type === 'CallExpression' ? calleeName(node.callee) : ''
    if (node.type !== 'CallExpression' || !TITLED.has(name) || !node.arguments[0]) return []
    return { pieces: [...piecesOf(node.arguments[0])], kind: GROUPS.has(name) ? 'heading' : 'title' }
  })
}

/** @param {Node} program @returns {Message[]} */
function literals(program) {
  /** @type {Set<Node>} */
  const read = new Set()
  return nodes(program).flatMap((node) =>
    MESSAGES.has(node.type) && !read.has(node) ? { pieces: [...piecesOf(node, read)], kind: 'text' } : [],
  )
}

/** `test` of `test.skip.each([...])`. @param {Node} callee @returns {string} */
function calleeName(callee) {
  if (callee.type === 'Identifier') return callee.name
  if (callee.type === 'MemberExpression') return calleeName(callee.object)
  if (callee.type === 'CallExpression') return calleeName(callee.callee)
  return callee.type === 'TaggedTemplateExpression' ? calleeName(callee.tag) : ''
}

/**
 * Yields the parts of a message in order.
 * @param {Node} node
 * @param {Set<Node>} [read] nodes that are part of the message
 * @returns {Generator<Piece>}
 */
function* piecesOf(node, read = new Set(), top = true) {
  const parts = partsOf(node, top)
  if (parts || isText(node)) read.add(node)
  if (!parts) yield { ...spanOf(node), prose: isText(node), quoted: node.type === 'StringLiteral' }
  for (const part of parts ?? []) yield* piecesOf(part, read, false)
}

/** @param {Node} node */
const isText = (node) => ['StringLiteral', 'TemplateElement', 'JSXText'].includes(node.type)

/** @param {Node} node @param {boolean} top whether the message starts here @returns {Node[] | undefined} */
function partsOf(node, top) {
  if (node.type === 'BinaryExpression') return node.operator === '+' ? [node.left, node.right] : undefined
  if (node.type === 'JSXExpressionContainer' && node.expression.type === 'StringLiteral')
    return [node.expression]
  if (node.type === 'TemplateLiteral')
    return [...node.quasis, ...node.expressions].sort((a, b) => spanOf(a).start - spanOf(b).start)
  if (top && (node.type === 'JSXElement' || node.type === 'JSXFragment')) return node.children
  return undefined
}

/** Returns a node and all its descendants. @param {Node} node @param {Node[]} [found] @returns {Node[]} */
function nodes(node, found = []) {
  found.push(node)
  for (const [name, value] of Object.entries(node)) {
    if (NO_MESSAGE.has(name) || typeof value !== 'object') continue
    for (const child of Array.isArray(value) ? value : [value]) {
      if (typeof child?.type === 'string') nodes(child, found)
    }
  }
  return found
}

/** @param {{ start?: number | null, end?: number | null }} node */
const spanOf = ({ start, end }) => ({ start: start ?? 0, end: end ?? 0 })
