import { readdir, readFile } from 'node:fs/promises'
import { expect, it } from 'vitest'

const folder = new URL('../../src/adapters/', import.meta.url)
const adapters = (await readdir(folder, { recursive: true })).filter((file) => file.endsWith('.ts'))

it.each(adapters)('%s maps and decides nothing: it is short', async (file) => {
  const lines = (await readFile(new URL(file, folder), 'utf8')).split('\n').length
  expect(lines).toBeLessThan(file.includes('/') ? 150 : 120)
})

it('there are adapters', () => {
  expect(adapters).toContain('express.ts')
})
