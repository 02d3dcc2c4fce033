// Excludes error texts from mutation. Error codes and conditions are mutated.

/**
 * The used parts of Babel's nodes and paths.
 *
 * @typedef {{ type: string, name?: string, callee?: Node, arguments?: Node[] }} Node
 * @typedef {{ node: Node, parentPath?: Path }} Path
 */

/**
 * @param {object} path
 * @returns {string | undefined}
 */
function shouldIgnore(path) {
  let { node, parentPath } = /** @type {Path} */ (path)
  if (node.type !== 'TemplateLiteral' && node.type !== 'StringLiteral') return undefined
  while (parentPath?.node.type === 'BinaryExpression') ({ node, parentPath } = parentPath)
  const error = parentPath?.node.type === 'NewExpression' ? parentPath.node.callee?.name : undefined
  if (!error?.endsWith('Error')) return undefined
  const isCode = error !== 'Error' && parentPath?.node.arguments?.[0] === node
  return isCode ? undefined : 'the text of an error'
}

export const strykerPlugins = [{ kind: 'Ignore', name: 'messages', value: { shouldIgnore } }]
