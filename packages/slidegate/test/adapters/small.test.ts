import { readdir, readFile } from 'node:fs/promises'
import { expect, it } from 'vitest'

// What a linter would say only file by file: an adapter maps one framework to the guard, and is short.

const folder = new URL('../../src/adapters/', import.meta.url)
const adapters = (await readdir(folder, { recursive: true })).filter((file) => file.endsWith('.ts'))

it.each(adapters)('%s knows no framework but its own, and is short', async (file) => {
  const text = await readFile(new URL(file, folder), 'utf8')
  expect(text.split('\n').length).toBeLessThan(file.includes('/') ? 150 : 120)
  const name = file.startsWith('nest') ? '@nestjs/' : file.replace(/\.ts$/, '')
  const imported = [...text.matchAll(/from '([^.'][^']*)'/g)].map(([, from]) => from!)
  expect(imported.filter((from) => !from.startsWith('node:') && !from.startsWith(name))).toEqual([])
})

it('there are adapters', () => {
  expect(adapters).toContain('express.ts')
})
