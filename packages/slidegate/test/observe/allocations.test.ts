// tier: system
import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import { expect, it, vi } from 'vitest'
import { Announcer } from '../../src/events.ts'
import { createLimiter, slidingWindow } from '../../src/index.ts'
import { FLAGS } from '../support/allocated.js'
import { bundled } from '../support/bundled.ts'

const SCRIPT = await bundled(new URL('allocations.js', import.meta.url))

it('an unmeasured decision allocates nothing for events, and a measured one at most an event', async () => {
  const { stdout } = await promisify(execFile)(process.execPath, [...FLAGS, SCRIPT])
  const { never, stopped, measured, counting, calls } = JSON.parse(stdout)
  // A decision allocates this much, which proves that the heap was read.
  expect(never).toBeGreaterThan(100)
  expect(Math.abs(stopped - never)).toBeLessThan(4)
  // The size of `{ key, decision }`.
  expect(measured - never).toBeLessThan(64)
  expect(counting).toBeLessThan(1)
  expect(calls).toBeLessThan(1)
})

// A compiler may omit an unused event, so bytes alone prove nothing.
it('a decision without listeners creates no event', async () => {
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
