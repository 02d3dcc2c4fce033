import { anchor, type Page } from '../../../../docs/.vitepress/markdown.ts'

export { linkTargets, type Page, pages, prose, ROOT } from '../../../../docs/.vitepress/markdown.ts'

/** A fenced block of code. */
export interface Block {
  readonly language: string
  readonly code: string
  /** Line number of its first line, from 1. */
  readonly line: number
  /** The name at the end of the line before it: "Save this as `app.mjs`:". */
  readonly file: string | undefined
}

export function codeBlocks(text: string): Block[] {
  const blocks: Block[] = []
  const lines = text.split('\n')
  for (let i = 0; i < lines.length; i++) {
    const language = /^```(\S*)/.exec(lines[i]!)?.[1]
    if (language === undefined) continue
    const first = i + 1
    for (i = first; i < lines.length && lines[i] !== '```'; i++);
    if (i === lines.length) throw new Error(`The code block in line ${first} has no end`)
    const before = lines.slice(0, first - 1).findLast((line) => line !== '') ?? ''
    const file = /`([\w-]+\.\w+)`:$/.exec(before)?.[1]
    blocks.push({ language, code: lines.slice(first, i).join('\n'), line: first + 1, file })
  }
  return blocks
}

/** Whether the commands of a page are tested. */
export function hasCommands({ path }: Page): boolean {
  return /^(README|docs\/tutorial|docs\/guides\/[^/]+)\.md$/.test(path)
}

/** Returns the anchors of headings. */
export function anchors(text: string): string[] {
  const headings = text.replace(/^```[\s\S]*?^```$/gm, '').matchAll(/^#+ (.*)$/gm)
  return Array.from(headings, ([, heading]) => anchor(heading!))
}
