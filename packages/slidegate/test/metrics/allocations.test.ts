import { execFile } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { expect, it } from 'vitest'

const SCRIPT = fileURLToPath(new URL('allocations.js', import.meta.url))

it('nothing is allocated for a decision that nobody measures, and no more than an event for one that somebody does', async () => {
  const heap = ['--expose-gc', '--min-semi-space-size=256', '--max-semi-space-size=256']
  const { stdout } = await promisify(execFile)(process.execPath, [...heap, SCRIPT])
  const { never, stopped, measured, counting, calls } = JSON.parse(stdout)
  // A decision itself: that the heap was read at all.
  expect(never).toBeGreaterThan(100)
  expect(Math.abs(stopped - never)).toBeLessThan(4)
  // { key, decision }.
  expect(measured - never).toBeLessThan(64)
  expect(counting).toBeLessThan(1)
  expect(calls).toBeLessThan(1)
})
