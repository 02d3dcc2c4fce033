import { describe, expect, it } from 'vitest'
import { COARSE, HyperLogLog } from '../../src/admin/hyperloglog.ts'
import { keyHash } from '../../src/admin/keys.ts'
import { distinctIn } from '../../src/admin/merge-keys.ts'

const NAMES = ['user:', '10.0.', 'session-0000-', 'k']

/** Returns a sketch of the keys `name + i`, for `i` from `from` to below `to`. */
function sketchOf(name: string, from: number, to: number): HyperLogLog {
  const sketch = new HyperLogLog()
  for (let i = from; i < to; i++) sketch.add(keyHash(name + i))
  return sketch
}

const offBy = (found: number, truly: number): number => Math.abs(found / truly - 1)

describe('the estimated number of distinct keys', () => {
  it.each([1, 3, 10, 100, 1000, 10_000, 50_000, 100_000, 1_000_000])('stays within 2%% of %i', (count) => {
    for (const name of NAMES) expect(offBy(sketchOf(name, 0, count).count(), count)).toBeLessThan(0.02)
  })

  it('starts at 0 and ignores repeated keys', () => {
    expect(new HyperLogLog().count()).toBe(0)
    const sketch = sketchOf('user:', 0, 5000)
    expect(HyperLogLog.union([sketch, sketchOf('user:', 1000, 5000)]).count()).toBe(sketch.count())
  })

  it('counts keys that several processes share once', () => {
    const parts = [
      [0, 60_000],
      [40_000, 100_000],
      [80_000, 150_000],
    ].map(([from, to]) => sketchOf('user:', from!, to!))
    expect(offBy(distinctIn(parts.map((part) => part.text())), 150_000)).toBeLessThan(0.02)
  })

  it('stays accurate with fewer registers, and merges the same before and after folding', () => {
    for (const count of [10, 1000, 200_000]) {
      for (const name of NAMES) {
        const folded = sketchOf(name, 0, count).folded(COARSE)
        expect(folded.registers).toHaveLength(4096)
        // A bit more than three standard errors.
        expect(offBy(folded.count(), count)).toBeLessThan(0.055)
      }
    }
    const parts = [sketchOf('k', 0, 7000), sketchOf('k', 5000, 20_000)]
    expect(HyperLogLog.union(parts.map((part) => part.folded(COARSE))).registers).toEqual(
      HyperLogLog.union(parts).folded(COARSE).registers,
    )
  })

  it.each([
    '',
    'none',
    7,
    null,
    Buffer.alloc(4096, 255).toString('base64'),
    Buffer.alloc(3).toString('base64'),
  ])('ignores invalid sketches: %j', (text) => {
    expect(HyperLogLog.of(text)).toBeUndefined()
    expect(distinctIn([text])).toBe(0)
  })
})
