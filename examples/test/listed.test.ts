import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { EXAMPLES, SCRIPTS } from './support/example.ts'

const names = Object.keys(SCRIPTS).sort()

it('every example has a folder', () => {
  const folders = readdirSync(EXAMPLES, { withFileTypes: true }).filter((entry) => entry.isDirectory())
  const others = ['node_modules', 'support', 'test']
  expect(folders.map(({ name }) => name).filter((name) => !others.includes(name))).toEqual(names)
})

it('docs/examples.md has a line for every example', () => {
  const page = readFileSync(join(EXAMPLES, '../docs/examples.md'), 'utf8')
  const lines = Array.from(
    page.matchAll(/^\| .*\.\.\/examples\/([\w-]+)\/.*`npm run example ([\w-]+)` \|$/gm),
  )
  expect(lines.map(([, folder]) => folder).sort()).toEqual(names)
  expect(lines.map(([, , command]) => command).sort()).toEqual(names)
})
