import type { MarkdownRenderer } from 'vitepress'

/** Removes empty table heads, and makes empty heading cells plain cells. Markdown requires both. */
export function emptyHeadings(md: MarkdownRenderer): void {
  md.core.ruler.push('empty-headings', ({ tokens }) => {
    for (let open = 0; open < tokens.length; open++) {
      if (tokens[open]!.type !== 'thead_open') continue
      const close = tokens.findIndex(({ type }, i) => i > open && type === 'thead_close')
      const head = tokens.slice(open, close + 1)
      if (head.every(({ content }) => content === '')) tokens.splice(open, head.length)
      head.forEach(({ type, content }, i) => {
        if (type === 'inline' && content === '') head[i - 1]!.tag = head[i + 1]!.tag = 'td'
      })
    }
  })
}

/** Renders indented code like fenced code: in a box that scrolls. */
export function indentedCode(md: MarkdownRenderer): void {
  md.core.ruler.push('indented-code', ({ tokens }) => {
    for (const token of tokens) {
      if (token.type === 'code_block') Object.assign(token, { type: 'fence', tag: 'code', info: 'txt' })
    }
  })
}
