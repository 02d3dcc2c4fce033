// tier: system
import { expect, test } from 'vitest'
import { barChart } from '../../replay/src/demo/run-demo.ts'
import { slidegate } from './support/cli.ts'

test('the demo measures 200% for the fixed and 100% for the sliding window, then exits', async () => {
  const { code, stdout, stderr } = await slidegate(['demo'])
  expect(stderr).toBe('')
  expect(code).toBe(0)
  expect(stdout).toMatch(/^fixed window +\S+ 200 of 100 = 200%$/m)
  expect(stdout).toMatch(/^sliding window +\S+ 100 of 100 = 100%$/m)
  // There is no terminal, so there are no colors.
  expect(stdout).not.toContain('\u001b')
})

test('the chart has colors only on request', () => {
  const bars = [
    { label: 'a', value: 2, color: 'red' },
    { label: 'b', value: 1, color: 'green' },
  ] as const
  expect(barChart(bars, 2, true)).toContain('\u001b')
  expect(barChart(bars, 2, false)).not.toContain('\u001b')
  expect(barChart(bars, 2, false)).toMatch(/2 of 2 = 100%/)
})
