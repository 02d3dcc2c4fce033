import { relative } from 'node:path'
import type { MarkdownRenderer } from 'vitepress'
import { addressOf, linked } from './addresses.ts'
import { ROOT } from './markdown.ts'

/** Makes links to files of the repository lead to the pages that show them. */
export function repositoryLinks(md: MarkdownRenderer): void {
  md.core.ruler.push('repository-links', ({ tokens, env }) => {
    const from = relative(ROOT, env.realPath ?? env.path).replaceAll('\\', '/')
    for (const token of tokens.flatMap(({ children }) => children ?? [])) {
      const target = token.type === 'link_open' ? linked(from, token.attrGet('href') ?? '') : undefined
      if (target !== undefined) token.attrSet('href', `${addressOf(target.path)}${target.hash}`)
    }
  })
}
