// tier: integration
import { expect, it } from 'vitest'
import { isServer } from './programs.ts'
import { testServers, testSnippets } from './snippets.ts'

// Tests the snippets of READMEs. They only need Redis and the root's packages.

const snippets = testSnippets('readmes', '.')
testServers(snippets)

it('the READMEs have snippets, including servers', () => {
  expect(new Set(snippets.programs.map(({ page }) => page))).toContain('README.md')
  expect(snippets.programs.filter(isServer).length).toBeGreaterThan(1)
})
