// tier: system
import { expect, it } from 'vitest'
import { isServer, needsRedis } from './programs.ts'
import { testServers, testSnippets } from './snippets.ts'

// Tests the snippets of docs/. The snippets of READMEs are tested by readme.test.ts, those of docs/migrate by
// bench/test/migrate.

const snippets = testSnippets('docs', 'packages/slidegate/test')
testServers(snippets)

it('docs/ has snippets in memory, on Redis and in servers', () => {
  const { programs } = snippets
  expect(programs.filter(isServer).length).toBeGreaterThan(0)
  expect(programs.filter(needsRedis).length).toBeGreaterThan(1)
  expect(programs.filter((program) => !isServer(program) && !needsRedis(program)).length).toBeGreaterThan(3)
})
