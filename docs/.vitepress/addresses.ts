import { existsSync, statSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { ROOT } from './markdown.ts'

/** Pages whose address isn't their path. */
const NAMED: Record<string, string> = {
  'docs/home.md': 'index.md',
  'docs/README.md': 'pages.md',
  'README.md': 'overview.md',
}

/** Returns the path of a Markdown file's page on the site. */
export function rewritten(file: string): string {
  const named = NAMED[file]
  if (named !== undefined) return named
  return file
    .replace(/^docs\//, '')
    .replace(/(^|\/)README\.md$/, '$1index.md')
    .replace(/[A-Z]+\.md$/, (name) => name.toLowerCase())
}

/** The address of a file or folder of the repository. Without a page, it's the picture or text itself. */
export function addressOf(path: string): string {
  const page = pageOf(path)
  // Many servers hide names that begin with a dot.
  if (page === undefined) return `/source/${path.replace(/(^|\/)\./g, '$1')}${isPicture(path) ? '' : '.txt'}`
  return `/${rewritten(page)}`.replace(/(^|\/)index\.md$/, '$1').replace(/\.md$/, '')
}

/** Whether the site shows the path as it is, because it has no page. */
export function isSource(path: string): boolean {
  return pageOf(path) === undefined
}

function isPicture(path: string): boolean {
  return /\.(svg|png)$/.test(path)
}

/** Returns a link's target: a path from the root, and a hash. Undefined if it's outside of the repository. */
export function linked(from: string, link: string): { path: string; hash: string } | undefined {
  if (/^([a-z][a-z+.-]*:|\/|#)/i.test(link)) return undefined
  const [file = '', hash = ''] = link.split(/(?=#)/)
  return { path: join(dirname(from), decodeURI(file)).replaceAll('\\', '/').replace(/\/$/, ''), hash }
}

/** A folder's page is its README, if it has one. */
function pageOf(path: string): string | undefined {
  if (path.endsWith('.md')) return /(^|\/)\./.test(path) ? undefined : path
  const readme = `${path}/README.md`
  const hasOne =
    existsSync(join(ROOT, path)) && statSync(join(ROOT, path)).isDirectory() && existsSync(join(ROOT, readme))
  return hasOne ? readme : undefined
}
