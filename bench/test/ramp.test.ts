import { readFileSync } from 'node:fs'
import { expect, it } from 'vitest'
import { readRamps, SVG_FILE, svgOf } from '../src/ramp/plot.ts'

it('docs/load-ramp.svg shows docs/load-ramp.json', () => {
  expect(readFileSync(SVG_FILE, 'utf8')).toBe(svgOf(readRamps()))
})

it('the ramps saturate, and each step offers more than the one before', () => {
  const { ramps } = readRamps()
  expect(ramps.map(({ target }) => target).sort()).toEqual(['HTTP', 'gRPC', 'library on Redis'])
  for (const { steps, saturation } of ramps) {
    expect(saturation).not.toBeNull()
    expect(steps.length).toBeGreaterThan(3)
    const offered = steps.map((step) => step.offered)
    expect(offered).toEqual(offered.toSorted((a, b) => a - b))
  }
})
