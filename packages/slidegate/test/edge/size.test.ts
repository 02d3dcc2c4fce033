// tier: system
import { describe, expect, it } from 'vitest'
import { type Bundle, bundleOf } from './bundle.ts'

// Minified and gzipped sizes of the built package. If you raise a bound, update the figures in docs/edge.md.
const BOUNDS: readonly (readonly [what: string, module: string, maxKB: number])[] = [
  ['all of slidegate', "export * from 'slidegate'", 48.5],
  ['the most common imports', "export { createLimiter, slidingWindow, memoryStore } from 'slidegate'", 35.4],
  [
    'all of slidegate and of slidegate/http',
    "export * from 'slidegate'; export * from 'slidegate/http'",
    61.5,
  ],
  ['a limit without a limiter', "export { slidingWindow } from 'slidegate'", 6.5],
  ['the key of an address', "export { addressKey } from 'slidegate/http'", 6],
  ['headers', "export { draft11Headers } from 'slidegate/http'", 1.5],
]

function bytesOf({ inputs }: Bundle, path: string): number {
  const bytes = Object.entries(inputs).map(([name, { bytesInOutput }]) =>
    name.includes(path) ? bytesInOutput : 0,
  )
  return bytes.reduce((sum, each) => sum + each, 0)
}

describe('bundled for the edge', () => {
  it.each(BOUNDS)('%s', async (what, module, maxKB) => {
    const bundle = await bundleOf(module)
    console.log(
      `${what}: ${(bundle.gzippedBytes / 1000).toFixed(1)} kB of ${maxKB} kB, minified ${bundle.code.length}`,
    )
    expect(bundle.gzippedBytes / 1000).toBeLessThan(maxKB)
  })

  it('a limiter in memory includes no failure policy, and a store over the network does', async () => {
    const bytesOfPolicy = async (module: string) => bytesOf(await bundleOf(module), '/failure-policy.js')
    const limiter = "export { createLimiter, memoryStore, slidingWindow } from 'slidegate'"
    expect(await bytesOfPolicy(limiter)).toBe(0)
    expect(
      await bytesOfPolicy(`${limiter}; export { serviceStore } from 'slidegate/client'`),
    ).toBeGreaterThan(10_000)
  })

  it('only slidegate/calendar includes a part of temporal-polyfill', async () => {
    expect(bytesOf(await bundleOf("export * from 'slidegate'"), 'temporal-')).toBe(0)
    const calendar = bytesOf(await bundleOf("export * from 'slidegate/calendar'"), 'temporal-')
    expect(calendar).toBeGreaterThan(0)
    expect(calendar).toBeLessThan(25_000)
  })
})
