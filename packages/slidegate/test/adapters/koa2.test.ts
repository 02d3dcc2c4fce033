// tier: system
import { createRequire } from 'node:module'
import { describe, expect, it, vi } from 'vitest'

// Runs the Koa 3 tests on Koa 2. They compile with the types of Koa 3.

const require = createRequire(import.meta.url)
vi.mock('koa', () => ({ default: require('koa2') }))

it('the tests below use Koa 2', async () => {
  expect((await import('koa')).default).toBe(require('koa2'))
  expect(require('koa2/package.json').version).toMatch(/^2\./)
})

describe('Koa 2', async () => {
  await import('./koa.test.ts')
})
