import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { descriptionOf, foldersIn, treeOf } from '../../../../scripts/tree.js'
import { ROOT } from './markdown.ts'

// Tests `npm run tree`.

const PACKAGES = ['slidegate', 'replay', 'server', 'dashboard']

describe('the tree of a package', () => {
  it.each([
    ['a line', '// Keys as they are stored.\n\nimport a', 'Keys as they are stored'],
    ['several lines', '// Reads a log\n// in portions. And more.\n', 'Reads a log in portions'],
    ['a block', '/**\n * The bytes of `a.b`.\n *\n * @module\n */\nexport', 'The bytes of `a.b`'],
    ['a block of one line', '/* What is shared. */\n', 'What is shared'],
    ['a list', '// Two things:\n// - one\n// - two\n', 'Two things:'],
    ['Lua', '-- The twin of ban.ts.\nlocal a', 'The twin of ban.ts'],
    ['a program', '#!/usr/bin/env node\n// Prints folders.\n', 'Prints folders'],
    ['a test', '// tier: system\n// Real servers.\nimport a', 'Real servers'],
    ['no comment', "import a from 'b'\n\n/** Something. */\nexport const c = 1\n", ''],
    ['an empty file', '', ''],
  ])('the description of a file is the first sentence of its first comment: %s', (_, text, description) => {
    expect(descriptionOf(text)).toBe(description)
  })

  it.each(PACKAGES)('each file of packages/%s/src starts with a description', (name) => {
    const folder = join(ROOT, 'packages', name, 'src')
    const silent = readdirSync(folder, { recursive: true, encoding: 'utf8' }).filter(
      (path) =>
        /\.(tsx?|lua)$/.test(path) &&
        !path.endsWith('.generated.ts') &&
        !isDescribed(readFileSync(join(folder, path), 'utf8')),
    )
    expect(silent).toEqual([])
  })
})

/** Whether the first comment is about the file. A docstring describes a declaration, unless it has `@module`. */
function isDescribed(text: string): boolean {
  const docstring = /^\/\*\*.*?\*\//s.exec(text)?.[0]
  return descriptionOf(text) !== '' && (docstring === undefined || docstring.includes('@module'))
}

describe('the folders in ARCHITECTURE.md', () => {
  const folders = foldersIn('ARCHITECTURE.md')

  it('exist', () => {
    expect(folders.get('packages/slidegate/src/limits')).toMatch(/limits/)
    expect(Array.from(folders.keys()).filter((path) => !existsSync(join(ROOT, path)))).toEqual([])
  })

  it.each(['slidegate', 'server'])('include each folder in packages/%s/src', (name) => {
    const source = `packages/${name}/src`
    const found = readdirSync(join(ROOT, source), { withFileTypes: true })
      .filter((entry) => entry.isDirectory())
      .map((entry) => `${source}/${entry.name}`)
    expect(found.filter((path) => !folders.has(path))).toEqual([])
  })
})

it('a tree lists folders and files with their descriptions', () => {
  expect(treeOf('packages/dashboard/src').split('\n')).toEqual(
    expect.arrayContaining([
      expect.stringMatching(/^packages\/dashboard\/src\/ +\S/),
      expect.stringMatching(/^ {2}app\.tsx +START HERE: \S/),
      expect.stringMatching(/^ {2}components\/ +\S/),
      expect.stringMatching(/^ {4}table\.tsx +Tables/),
    ]),
  )
})
