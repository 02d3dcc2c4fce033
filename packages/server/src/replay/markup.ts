/** Markup that is as it was meant: texts in it are escaped. */
export class Markup {
  readonly text: string

  constructor(text: string) {
    this.text = text
  }
}

export type Child = Markup | string | number

export type Attributes = Readonly<Record<string, string | number | undefined>>

/** Elements that have no end. */
const VOID = new Set(['br', 'meta'])

/** An element of HTML or SVG. Attributes that are `undefined` are left out. */
export function element(name: string, attributes: Attributes, ...children: readonly Child[]): Markup {
  const told = Object.entries(attributes).flatMap(([key, value]) =>
    value === undefined ? [] : ` ${key}="${escaped(`${value}`)}"`,
  )
  const start = `<${name}${told.join('')}>`
  return new Markup(VOID.has(name) ? start : `${start}${markupOf(children)}</${name}>`)
}

/** Several after each other. */
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
