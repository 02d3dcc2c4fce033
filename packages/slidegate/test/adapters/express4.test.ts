// tier: system
import { createRequire } from 'node:module'
import { describe, expect, it, vi } from 'vitest'

// Runs the Express 5 tests on Express 4. They compile with the types of Express 5.

const require = createRequire(import.meta.url)
vi.mock('express', () => ({ default: require('express4') }))

it('the tests below use Express 4', async () => {
  expect((await import('express')).default).toBe(require('express4'))
  expect(require('express4/package.json').version).toMatch(/^4\./)
})

describe('Express 4', async () => {
  await import('./express.test.ts')
  await import('./routes.test.ts')
})
