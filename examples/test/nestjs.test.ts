import { expect, it } from 'vitest'
import { served } from './support/example.ts'

it('the app has a limit, the search a tighter one, and the health check none', async () => {
  const url = await served('nestjs')
  const ask = async (path: string) => {
    const response = await fetch(url + path)
    return `${response.status} ${response.headers.get('RateLimit')?.replace(/;t=\d+/, '')}`
  }

  expect([await ask('/books/search'), await ask('/books/search'), await ask('/books/search')]).toEqual([
    '200 "search-per-minute";r=1',
    '200 "search-per-minute";r=0',
    '429 "search-per-minute";r=0',
  ])
  for (let left = 4; left >= 0; left--) expect(await ask('/books')).toBe(`200 "5-per-1m";r=${left}`)
  expect(await ask('/books')).toBe('429 "5-per-1m";r=0')
  expect(await ask('/health')).toBe('200 undefined')
})
