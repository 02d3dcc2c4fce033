// tier: system
import { expect, it } from 'vitest'
import { BOUNDS, measureAllocations } from './allocations.ts'

// A change that allocates more per decision, or calls Redis more often, fails here, on any machine.
// Lower the bounds when a decision gets cheaper: `npm run bench -- allocations` prints the new figures.

it('a decision allocates and calls Redis no more than its bound allows', async () => {
  const figures = await measureAllocations()
  expect(Object.keys(figures)).toEqual(Object.keys(BOUNDS))
  for (const [name, { bytes, calls = 0 }] of Object.entries(figures)) {
    // A decision has at least this size. If not, the heap wasn't measured.
    expect(bytes, name).toBeGreaterThan(200)
    expect(bytes, name).toBeLessThanOrEqual(BOUNDS[name]!.bytes)
    expect(calls, name).toBeLessThanOrEqual(BOUNDS[name]!.calls ?? 0)
  }
})
