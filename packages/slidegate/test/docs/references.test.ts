import { existsSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { anchors, linkTargets, pages, ROOT } from './markdown.ts'

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
