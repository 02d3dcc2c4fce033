import { readdirSync, readFileSync } from 'node:fs'
import { join, relative } from 'node:path'

/** The root of the repository. */
export const ROOT: string = join(import.meta.dirname, '../../../..')

/** A fenced block of code. */
export interface Block {
  readonly language: string
  readonly code: string
  /** Of its first line, from 1. */
  readonly line: number
}

/** A Markdown file of the repository. */
export interface Page {
  /** From the root, with slashes. */
  readonly path: string
  readonly text: string
}

/** All of them, but for those of dependencies and what is built. */
export function pages(): Page[] {
  return markdownIn(ROOT).map((file) => ({
    path: relative(ROOT, file).replaceAll('\\', '/'),
    text: readFileSync(file, 'utf8'),
  }))
}

function markdownIn(folder: string): string[] {
  return readdirSync(folder, { withFileTypes: true }).flatMap((entry) => {
    const path = join(folder, entry.name)
    if (entry.isFile()) return entry.name.endsWith('.md') ? [path] : []
    const isOurs = entry.isDirectory() && !['node_modules', 'dist', 'coverage', '.git'].includes(entry.name)
    return isOurs ? markdownIn(path) : []
  })
}

export function codeBlocks(text: string): Block[] {
  const blocks: Block[] = []
  const lines = text.split('\n')
  for (let i = 0; i < lines.length; i++) {
    const language = /^```(\S*)/.exec(lines[i]!)?.[1]
    if (language === undefined) continue
    const first = i + 1
    for (i = first; i < lines.length && lines[i] !== '```'; i++);
    if (i === lines.length) throw new Error(`the block that begins in line ${first} has no end`)
    blocks.push({ language, code: lines.slice(first, i).join('\n'), line: first + 1 })
  }
  return blocks
}

/** The text without any code. */
export function prose(text: string): string {
  return text.replace(/^```[\s\S]*?^```$/gm, '').replace(/(`+)[^`][\s\S]*?\1/g, '')
}

/** Where links and images lead to. */
export function linkTargets(text: string): string[] {
  return Array.from(prose(text).matchAll(/\]\(([^)\s]+)\)/g), ([, target]) => target!)
}

/** The names under which headings are linked to, as the usual hosts of repositories make them. */
export function anchors(text: string): string[] {
  const headings = text.replace(/^```[\s\S]*?^```$/gm, '').matchAll(/^#+ (.*)$/gm)
  return Array.from(headings, ([, heading]) =>
    heading!
      .toLowerCase()
      .replace(/[^\p{L}\p{N} _-]/gu, '')
      .replaceAll(' ', '-'),
  )
}
