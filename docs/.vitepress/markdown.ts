import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

/** The root of the repository. */
export const ROOT: string = fileURLToPath(new URL('../..', import.meta.url)).replace(/\/$/, '')

/** A Markdown file of the repository. */
export interface Page {
  /** From the root, with slashes. */
  readonly path: string
  readonly text: string
}

const GENERATED = ['node_modules', 'dist', 'coverage', 'reports', 'docs/reference']

/** All pages that aren't generated. */
export function pages(): Page[] {
  return markdownIn('').map((path) => ({ path, text: readFileSync(join(ROOT, path), 'utf8') }))
}

function markdownIn(folder: string): string[] {
  return readdirSync(join(ROOT, folder), { withFileTypes: true }).flatMap((entry) => {
    const path = folder === '' ? entry.name : `${folder}/${entry.name}`
    if (entry.isFile()) return entry.name.endsWith('.md') ? [path] : []
    const isOurs = entry.isDirectory() && ![entry.name, path].some((name) => GENERATED.includes(name))
    return isOurs && !entry.name.startsWith('.') ? markdownIn(path) : []
  })
}

/** The text without any code. */
export function prose(text: string): string {
  return text.replace(/^```[\s\S]*?^```$/gm, '').replace(/(`+)[^`][\s\S]*?\1/g, '')
}

/** The targets of links and images. */
export function linkTargets(text: string): string[] {
  return Array.from(prose(text).matchAll(/\]\(([^)\s]+)\)/g), ([, target]) => target!)
}

/** A heading's anchor, as GitHub and GitLab make it. */
export function anchor(heading: string): string {
  return heading
    .toLowerCase()
    .replace(/[^\p{L}\p{N} _-]/gu, '')
    .replaceAll(' ', '-')
}
