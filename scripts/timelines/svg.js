// Builds SVG elements as text.

const WIDTH = 800

export const COLOURS = {
  admitted: '#13795b',
  denied: '#c9302c',
  used: '#3568b0',
  limit: '#333333',
  fullest: '#f6c945',
  boundary: '#8a8a8a',
  text: '#222222',
  faint: '#666666',
  rule: '#dddddd',
}

const FONT = 'Helvetica, Arial, sans-serif'
const MONO = 'Menlo, Consolas, monospace'

const escaped = (/** @type {string} */ text) =>
  text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;').replaceAll('"', '&quot;')

/** Rounds to a tenth. */
export const round = (/** @type {number} */ number) => Math.round(number * 10) / 10

/**
 * @param {string} name
 * @param {Record<string, string | number>} attributes numbers are rounded to a tenth
 * @param {string} content
 */
export function element(name, attributes, content = '') {
  const pairs = Object.entries(attributes).map(
    ([key, value]) => ` ${key}="${typeof value === 'number' ? round(value) : escaped(value)}"`,
  )
  return content === '' ? `<${name}${pairs.join('')}/>` : `<${name}${pairs.join('')}>${content}</${name}>`
}

/**
 * @param {number} x
 * @param {number} y base line
 * @param {string} words
 * @param {{ fill?: string, size?: number, anchor?: 'start' | 'middle' | 'end', bold?: boolean, mono?: boolean }} style
 */
export function text(x, y, words, style = {}) {
  const { fill = COLOURS.text, size = 13, anchor = 'start', bold = false, mono = false } = style
  /** @type {Record<string, string | number>} */
  const attributes = { x, y, fill, 'font-size': size }
  if (anchor !== 'start') attributes['text-anchor'] = anchor
  if (bold) attributes['font-weight'] = 'bold'
  if (mono) attributes['font-family'] = MONO
  return element('text', attributes, escaped(words))
}

/** @param {Record<string, string | number>} more */
export function line(
  /** @type {number} */ x1,
  /** @type {number} */ y1,
  /** @type {number} */ x2,
  /** @type {number} */ y2,
  /** @type {string} */ stroke,
  more = {},
) {
  return element('line', { x1, y1, x2, y2, stroke, ...more })
}

/**
 * @param {string} title text for screen readers
 * @param {number} height
 * @param {readonly string[]} elements
 */
export function picture(title, height, elements) {
  const size = { width: WIDTH, height, viewBox: `0 0 ${WIDTH} ${round(height)}` }
  const lines = [
    element('title', {}, escaped(title)),
    element('rect', { width: WIDTH, height, fill: '#ffffff' }),
    ...elements,
  ]
  const attributes = { xmlns: 'http://www.w3.org/2000/svg', ...size, role: 'img', 'font-family': FONT }
  return `${element('svg', attributes, `\n${lines.join('\n')}\n`)}\n`
}
