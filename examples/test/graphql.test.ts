import { expect, it } from 'vitest'
import { played, served } from './support/example.ts'

it('queries cost their complexity, and those above the limit are always denied', async () => {
  const printed = await played('graphql')
  const answers = printed.split('\n').filter((line) => line.startsWith('  '))
  expect(answers.map((line) => line.trim().replace(/retry in \d+ s/, 'retry later'))).toEqual([
    '200, 1 books; 998 left',
    '200, 100 books; 897 left',
    '200, 100 books; 596 left',
    '200, 100 books; 295 left',
    '429, complexity: costs 301, retry later; 295 left',
    '429, complexity: costs 301, retry later; 295 left',
    '200, 1 books; 293 left',
    '429, complexity: costs 10201, never; 293 left',
  ])
})

it('negative and huge list lengths do not lower the cost of a query', async () => {
  const url = await served('graphql', '--serve')
  const ask = async (query: string) => {
    const response = await fetch(`${url}/graphql`, {
      method: 'POST',
      headers: { 'Content-Type': 'application/json' },
      body: JSON.stringify({ query }),
    })
    return [response.status, /r=\d+/.exec(response.headers.get('RateLimit') ?? '')?.[0]]
  }
  expect(await ask('{ books(first: -1000) { title } }')).toEqual([200, 'r=998'])
  const many = 2 ** 31 - 1
  const nested = `author { books(first: ${many}) { author { books(first: ${many}) { title } } } }`
  expect(await ask(`{ books(first: ${many}) { ${nested} } }`)).toEqual([429, 'r=998'])
})
