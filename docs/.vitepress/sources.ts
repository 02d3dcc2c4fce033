import { existsSync, readdirSync, readFileSync, statSync } from 'node:fs'
import { extname, join } from 'node:path'
import { bundledLanguages } from 'shiki'
import { addressOf, isSource, linked } from './addresses.ts'
import { linkTargets, pages, ROOT } from './markdown.ts'

/** A longer file is cut. */
const MAX_CHARACTERS = 64 * 1024
/** A longer file has no colors. Coloring long files would take a third of the build. */
const MAX_COLORED = 8 * 1024

const PICTURES = ['svg', 'png']
/** Languages whose name differs from the file extension. */
const LANGUAGES: Record<string, string> = { conf: 'nginx', service: 'ini' }

/** Files and folders that pages link to and that have no page. */
export function linkedSources(): string[] {
  const paths = pages().flatMap(({ path, text }) => {
    const withoutPictures = text.replace(/!\[[^\]]*\]\([^)]*\)/g, '')
    return linkTargets(withoutPictures).flatMap((target) => linked(path, target)?.path ?? [])
  })
  return [...new Set(paths)].filter((path) => existsSync(join(ROOT, path)) && isSource(path)).sort()
}

/** A source as a Markdown page. */
export function sourcePage(path: string, all: ReadonlySet<string>): string {
  const file = join(ROOT, path)
  const title = `# ${path.split('/').at(-1)}\n\n\`${path}\`\n\n`
  if (statSync(file).isDirectory()) return `${title}${listOf(path, all)}`
  const extension = extname(path).slice(1)
  if (PICTURES.includes(extension)) return `${title}![${path}](${file})`
  const text = readFileSync(file, 'utf8')
  const cut = text.slice(0, MAX_CHARACTERS)
  const fence = '`'.repeat(Math.max(3, ...Array.from(cut.matchAll(/`+/g), ([ticks]) => ticks.length + 1)))
  const rest = text.length > cut.length ? `\n\nThe first ${cut.length} of ${text.length} characters.` : ''
  const isColored = text.length <= MAX_COLORED && (extension in LANGUAGES || extension in bundledLanguages)
  const language = isColored ? (LANGUAGES[extension] ?? extension) : 'txt'
  return `${title}${fence}${language}\n${cut.replace(/\n?$/, '\n')}${fence}${rest}`
}

function listOf(folder: string, all: ReadonlySet<string>): string {
  return readdirSync(join(ROOT, folder), { withFileTypes: true })
    .filter(({ name }) => !['node_modules', 'dist'].includes(name))
    .map((entry) => {
      const path = `${folder}/${entry.name}`
      const name = `\`${entry.name}${entry.isDirectory() ? '/' : ''}\``
      return all.has(path) || !isSource(path) ? `- [${name}](${addressOf(path)})` : `- ${name}`
    })
    .join('\n')
}
