// HTML elements with escaped text. Builds sections, tables and legends from them.

import { type Step, type Steps, timeIn } from '../counts/over-time.ts'
import { formatCount } from '../text.ts'

/** Markup whose text is already escaped. */
export class Markup {
  readonly text: string

  constructor(text: string) {
    this.text = text
  }
}

export type Child = Markup | string | number

type Attributes = Readonly<Record<string, string | number | undefined>>

/** Elements without an end tag. */
const VOID = new Set(['br', 'meta'])

/** An HTML or SVG element. Omits attributes that are undefined. */
export function element(name: string, attributes: Attributes, ...children: readonly Child[]): Markup {
  const texts = Object.entries(attributes).flatMap(([key, value]) =>
    value === undefined ? [] : ` ${key}="${escaped(`${value}`)}"`,
  )
  const start = `<${name}${texts.join('')}>`
  return new Markup(VOID.has(name) ? start : `${start}${markupOf(children)}</${name}>`)
}

export function together(children: readonly Child[]): Markup {
  return new Markup(markupOf(children))
}

function markupOf(children: readonly Child[]): string {
  return children.map((child) => (child instanceof Markup ? child.text : escaped(`${child}`))).join('')
}

const ESCAPES: Readonly<Record<string, string>> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  "'": '&#39;',
}

function escaped(text: string): string {
  return text.replace(/[&<>"']/g, (character) => ESCAPES[character]!)
}

export function section(title: string, ...children: readonly Child[]): Markup {
  return element('section', {}, element('h2', {}, title), ...children)
}

export function legend(entries: readonly (readonly [name: string, text: string])[]): Markup {
  const items = entries.map(([name, text]) =>
    element(
      'li',
      {},
      element(
        'svg',
        { viewBox: '0 0 10 10', 'aria-hidden': 'true' },
        element('rect', { class: name, width: 10, height: 10 }),
      ),
      text,
    ),
  )
  return element('ul', { class: 'legend' }, ...items)
}

/** A table with a chart's data. */
export function stepTable(
  { fromMs, stepMs, steps }: Steps,
  caption: string,
  columns: readonly (readonly [head: string, text: (step: Step, i: number) => string])[],
): Markup {
  const rows = steps.map((step, i) => [
    timeIn(fromMs + i * stepMs, stepMs),
    ...columns.map(([, text]) => number(text(step, i))),
  ])
  const heads = ['from', ...columns.map(([head]) => numberHead(head))]
  return element('details', {}, element('summary', {}, 'Show as a table'), table(caption, heads, rows))
}

export function table(caption: string, heads: readonly Child[], rows: readonly (readonly Child[])[]): Markup {
  const inHead = heads.map((head) => (head instanceof Markup ? head : element('th', { scope: 'col' }, head)))
  const inBody = rows.map(([first, ...others]) =>
    element(
      'tr',
      {},
      ...[isCell(first!) ? first! : element('th', { scope: 'row' }, first!)],
      ...others.map((cell) => (isCell(cell) ? cell : element('td', {}, cell))),
    ),
  )
  return element(
    'div',
    { class: 'scroll', tabindex: 0, role: 'group', 'aria-label': caption },
    element(
      'table',
      {},
      element('caption', {}, caption),
      element('thead', {}, element('tr', {}, ...inHead)),
      // Joins the rows first, because there may be too many of them to pass as arguments.
      element('tbody', {}, together(inBody)),
    ),
  )
}

function isCell(child: Child): boolean {
  return child instanceof Markup && /^<t[dh][ >]/.test(child.text)
}

export function numberHead(text: string): Markup {
  return element('th', { scope: 'col', class: 'number' }, text)
}

export function number(value: number | string): Markup {
  return element('td', { class: 'number' }, typeof value === 'number' ? formatCount(value) : value)
}
