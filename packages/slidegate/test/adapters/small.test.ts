import { readdir, readFile } from 'node:fs/promises'
import { expect, it } from 'vitest'

// An adapter only maps one framework to the guard, so it is short.

const folder = new URL('../../src/adapters/', import.meta.url)
const adapters = (await readdir(folder, { recursive: true })).filter((file) => file.endsWith('.ts'))

it.each(adapters)('%s imports only its own framework and is short', async (file) => {
  const text = await readFile(new URL(file, folder), 'utf8')
  expect(text.split('\n').length).toBeLessThan(file.includes('/') ? 150 : 120)
  const name = file.startsWith('nest') ? '@nestjs/' : file.replace(/\.ts$/, '')
  const imported = [...text.matchAll(/from '([^.'][^']*)'/g)].map(([, from]) => from!)
  expect(imported.filter((from) => !from.startsWith('node:') && !from.startsWith(name))).toEqual([])
})

it("the list of adapters isn't empty", () => {
  expect(adapters).toContain('express.ts')
})
