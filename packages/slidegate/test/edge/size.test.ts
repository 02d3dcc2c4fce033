// tier: system
import { describe, expect, it } from 'vitest'
import { type Bundle, bundleOf, CALENDAR, CLIENT, HTTP, SLIDEGATE } from './bundle.ts'

// Minified and gzipped sizes. If you raise a bound, update the figures in docs/edge.md.
const BOUNDS: readonly (readonly [what: string, module: string, maxKB: number])[] = [
  ['all of slidegate', `export * from '${SLIDEGATE}'`, 48.5],
  [
    'the most common imports',
    `export { createLimiter, slidingWindow, memoryStore } from '${SLIDEGATE}'`,
    35.7,
  ],
  ['all of slidegate and of slidegate/http', `export * from '${SLIDEGATE}'; export * from '${HTTP}'`, 62],
  ['a limit without a limiter', `export { slidingWindow } from '${SLIDEGATE}'`, 6.5],
  ['the key of an address', `export { addressKey } from '${HTTP}'`, 6],
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
    const policy = ['failure-policy', 'breaker', 'deadlines', 'cluster/', 'refunds', 'store-health']
    const hasPolicy = (bundle: Bundle) => policy.map((name) => bytesOf(bundle, `resilience/${name}`) > 0)
    const limiter = `export { createLimiter, memoryStore, slidingWindow } from '${SLIDEGATE}'`
    expect(hasPolicy(await bundleOf(limiter))).toEqual(policy.map(() => false))
    const remote = await bundleOf(`${limiter}; export { serviceStore } from '${CLIENT}'`)
    expect(hasPolicy(remote)).toEqual(policy.map(() => true))
  })

  it('only slidegate/calendar includes a part of temporal-polyfill', async () => {
    expect(bytesOf(await bundleOf(`export * from '${SLIDEGATE}'`), 'temporal-')).toBe(0)
    const calendar = bytesOf(await bundleOf(`export * from '${CALENDAR}'`), 'temporal-')
    expect(calendar).toBeGreaterThan(0)
    expect(calendar).toBeLessThan(25_000)
  })
})
