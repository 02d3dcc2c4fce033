import { existsSync, statSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { ROOT } from './markdown.ts'

/** Where the page of a Markdown file is written to: where the file is, without what is only the order of the repository. */
export function rewritten(file: string): string {
  if (file === 'README.md') return 'overview.md'
  return file
    .replace(/^docs\//, '')
    .replace(/(^|\/)README\.md$/, '$1index.md')
    .replace(/[A-Z]+\.md$/, (name) => name.toLowerCase())
}

/** The address of the page that shows a file or folder of the repository. */
export function addressOf(path: string): string {
  const page = pageOf(path)
  if (page === undefined) return `/source/${sourceName(path)}/`
  return `/${rewritten(page)}`.replace(/(^|\/)index\.md$/, '$1').replace(/\.md$/, '')
}

/** Whether it is shown as it is, since no page is made of it. */
export function isSource(path: string): boolean {
  return pageOf(path) === undefined
}

/** A path as part of an address: servers tend to hide what begins with a dot. */
export function sourceName(path: string): string {
  return path.replace(/(^|\/)\./g, '$1')
}

/** What a link leads to: a path from the root, and whatever follows a `#`. Undefined: out of the repository. */
export function linked(from: string, link: string): { path: string; hash: string } | undefined {
  if (/^([a-z][a-z+.-]*:|\/|#)/i.test(link)) return undefined
  const [file = '', hash = ''] = link.split(/(?=#)/)
  return { path: join(dirname(from), decodeURI(file)).replaceAll('\\', '/').replace(/\/$/, ''), hash }
}

/** A folder is shown by its README, if there is one. */
function pageOf(path: string): string | undefined {
  if (path.endsWith('.md')) return /(^|\/)\./.test(path) ? undefined : path
  const readme = `${path}/README.md`
  const hasOne =
    existsSync(join(ROOT, path)) && statSync(join(ROOT, path)).isDirectory() && existsSync(join(ROOT, readme))
  return hasOne ? readme : undefined
}
