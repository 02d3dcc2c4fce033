// tier: integration
import { expect, it } from 'vitest'
import { isServer } from './programs.ts'
import { testServers, testSnippets } from './snippets.ts'

// The snippets that most people read first. They need Redis and the root's packages only.

const snippets = testSnippets('readmes', '.')
testServers(snippets)

it('the READMEs have snippets, and servers among them', () => {
  expect(new Set(snippets.programs.map(({ page }) => page))).toContain('README.md')
  expect(snippets.programs.filter(isServer).length).toBeGreaterThan(1)
})
