// tier: system
import { expect, it } from 'vitest'
import { isServer, needsRedis } from './programs.ts'
import { testServers, testSnippets } from './snippets.ts'

// The snippets of docs/. readme.test.ts has those of the READMEs, bench/test/migrate those about other packages.

const snippets = testSnippets('docs', 'packages/slidegate/test')
testServers(snippets)

it('there are snippets in memory, on Redis and in servers', () => {
  const { programs } = snippets
  expect(programs.filter(isServer).length).toBeGreaterThan(0)
  expect(programs.filter(needsRedis).length).toBeGreaterThan(1)
  expect(programs.filter((program) => !isServer(program) && !needsRedis(program)).length).toBeGreaterThan(3)
})
