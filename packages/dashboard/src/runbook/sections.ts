// The sections of docs/alerts.md. The page includes them, so that it works without the documentation site.

import text from '../../../../docs/alerts.md?raw'

/** What to do about one alert. */
export interface Section {
  readonly name: string
  readonly paragraphs: readonly string[]
  /** The texts under `Look`, `Do` or `False alarm`. */
  readonly items: readonly string[]
}

export type AlertName =
  | 'SlidegateStoreDown'
  | 'SlidegateInstanceDown'
  | 'SlidegateConfigInvalid'
  | 'SlidegateRedisDown'
  | 'SlidegateRedisEvictions'
  | 'SlidegateRedisMemoryHigh'

/** All sections, in the order of the document. */
export const SECTIONS: readonly Section[] = text
  .split(/^### /m)
  .slice(1)
  .map((section) => {
    const [name = '', ...blocks] = section
      .split(/^## /m)[0]!
      .trim()
      .split(/\n\n|\n(?=- )/)
    const lines = blocks.map((block) => block.replaceAll(/\s*\n\s*/g, ' ').trim())
    return {
      name,
      paragraphs: lines.filter((line) => line !== '' && !line.startsWith('- ')),
      items: lines.filter((line) => line.startsWith('- ')).map((line) => line.slice(2)),
    }
  })

export function runbookHref(alert: string): string {
  return `#/runbook/${alert}`
}

/** A piece of a paragraph. `alert` is set for links to another section. */
interface Piece {
  readonly text: string
  readonly kind: 'text' | 'code' | 'bold'
  readonly alert?: string
}

/** Splits Markdown into pieces. Links to other documents become text. */
export function piecesOf(markdown: string): Piece[] {
  return Array.from(
    markdown.matchAll(/`([^`]+)`|\*\*([^*]+)\*\*|\[([^\]]+)\]\(([^)]+)\)|[^`*[]+|./g),
    ([all, code, bold, label, target = '']): Piece => {
      if (code !== undefined) return { text: code, kind: 'code' }
      if (bold !== undefined) return { text: bold, kind: 'bold' }
      if (label === undefined) return { text: all, kind: 'text' }
      const alert = SECTIONS.find(({ name }) => `#${name.toLowerCase()}` === target)?.name
      return { text: label.replaceAll('`', ''), kind: 'text', ...(alert !== undefined && { alert }) }
    },
  )
}
