import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { anchors, codeBlocks, linkTargets, pages, ROOT } from './markdown.ts'

describe.each(pages())('$path', ({ path, text }) => {
  it('links to files and headings that exist', () => {
    const dead = linkTargets(text).filter((target) => {
      if (/^[a-z]+:/.test(target)) return false
      const [file = '', heading] = target.split('#')
      const linked = file === '' ? join(ROOT, path) : join(ROOT, dirname(path), file)
      if (!existsSync(linked)) return true
      return heading !== undefined && !anchors(readFileSync(linked, 'utf8')).includes(heading)
    })
    expect(dead).toEqual([])
  })

  it('names npm scripts that exist', () => {
    const { scripts } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8'))
    const named = Array.from(
      text.matchAll(/\bnpm (?:run )?(test|(?<=run )[\w:-]+)/g),
      ([, script]) => script!,
    )
    expect(named.filter((script) => !Object.hasOwn(scripts, script))).toEqual([])
  })
})

describe('the tree in ARCHITECTURE.md', () => {
  const [tree] = codeBlocks(readFileSync(join(ROOT, 'ARCHITECTURE.md'), 'utf8'))
  const named = pathsOf(tree!.code)

  it('names nothing that does not exist', () => {
    expect(named.filter((path) => !existsSync(join(ROOT, path)))).toEqual([])
  })

  it.each(['packages/slidegate/src', 'packages/server/src'])('names every file of %s', (folder) => {
    const files = readdirSync(join(ROOT, folder), { recursive: true, withFileTypes: true })
      .filter((entry) => entry.isFile() && !entry.name.endsWith('.generated.ts'))
      .map((entry) => join(entry.parentPath, entry.name).slice(join(ROOT, '/').length).replaceAll('\\', '/'))
    expect(files.filter((path) => !named.includes(path))).toEqual([])
  })
})

/** The paths of an indented list of names, in which those of folders end in a slash. `a.{b,c}` are two names. */
function pathsOf(tree: string): string[] {
  const folders: string[] = []
  return tree.split('\n').flatMap((line) => {
    const entry = /^( *)(\S+)/.exec(line)
    if (entry === null) return []
    const [, indent = '', name = ''] = entry
    const depth = indent.length / 2
    folders.length = depth
    const path = folders.join('') + name
    if (name.endsWith('/')) folders.push(name)
    const [, before, names, after] = /^(.*)\{(.*)\}(.*)$/.exec(path) ?? []
    return names === undefined ? [path] : names.split(',').map((each) => `${before}${each}${after}`)
  })
}
