import { existsSync, readdirSync, readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { addressOf, isSource, linked } from './addresses.ts'
import { linkTargets, pages, ROOT } from './markdown.ts'

/** Returns linked files and folders without a page: address -> contents. */
export function linkedSources(): Map<string, string | Buffer> {
  const paths = pages().flatMap(({ path, text }) => {
    const withoutPictures = text.replace(/!\[[^\]]*\]\([^)]*\)/g, '')
    return linkTargets(withoutPictures).flatMap((target) => linked(path, target)?.path ?? [])
  })
  const sources = [...new Set(paths)].filter((path) => existsSync(join(ROOT, path)) && isSource(path))
  return new Map(sources.map((path) => [addressOf(path), contentsOf(path)]))
}

/** A folder's contents are its files, each below its path. */
function contentsOf(path: string): string | Buffer {
  if (!statSync(join(ROOT, path)).isDirectory()) return readFileSync(join(ROOT, path))
  return readdirSync(join(ROOT, path), { withFileTypes: true })
    .filter(({ name }) => !['node_modules', 'dist'].includes(name))
    .map((entry) => `${path}/${entry.name}`)
    .map((each) => `${each}\n${'='.repeat(each.length)}\n\n${contentsOf(each)}`)
    .join('\n\n')
}
