// tier: system
import { execFile } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { expect, it, vi } from 'vitest'
import { Announcer } from '../../src/events.ts'
import { createLimiter, slidingWindow } from '../../src/index.ts'
import { FLAGS } from '../support/allocated.js'

const SCRIPT = fileURLToPath(new URL('allocations.js', import.meta.url))

it('nothing is allocated for a decision that nobody measures, and no more than an event for one that somebody does', async () => {
  const { stdout } = await promisify(execFile)(process.execPath, [...FLAGS, SCRIPT])
  const { never, stopped, measured, counting, calls } = JSON.parse(stdout)
  // A decision itself: that the heap was read at all.
  expect(never).toBeGreaterThan(100)
  expect(Math.abs(stopped - never)).toBeLessThan(4)
  // { key, decision }.
  expect(measured - never).toBeLessThan(64)
  expect(counting).toBeLessThan(1)
  expect(calls).toBeLessThan(1)
})

// Compilers may leave out what nobody looks at, so bytes alone do not tell.
it('no event is made of a decision that nobody hears of', async () => {
  const told = vi.spyOn(Announcer.prototype, 'emit')
  const limiter = createLimiter({ limits: [slidingWindow({ limit: 100, window: '1h' })] })
  const decide = async () => {
    limiter.consumeSync('k')
    await limiter.consume('k')
    await limiter.consumeMany([{ key: 'k' }])
    await limiter.wait('k')
    await limiter.reserve('k', 1)
  }
  await decide()
  expect(told).not.toHaveBeenCalled()
  limiter.on('decision', () => {})
  await decide()
  expect(told).toHaveBeenCalledTimes(5)
})
