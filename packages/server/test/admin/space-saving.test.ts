import { describe, expect, it } from 'vitest'
import { merged, SpaceSaving, type Summary } from '../../src/admin/space-saving.ts'
import { randomSequence } from '../support/logs.ts'

/** A stream with few frequent words and many rare ones, and how often each came. */
function stream(
  count: number,
  words: number,
  seed: number,
  skew = 1.5,
): { list: string[]; exact: Map<string, number> } {
  const random = randomSequence(seed)
  const exact = new Map<string, number>()
  const list = Array.from({ length: count }, () => {
    const word = `k${Math.floor(words * random() ** (2 * skew))}`
    exact.set(word, (exact.get(word) ?? 0) + 1)
    return word
  })
  return { list, exact }
}

function summaryOf(list: readonly string[], capacity: number): Summary {
  const sketch = new SpaceSaving(capacity)
  for (const word of list) sketch.add(word)
  return sketch.summary()
}

describe('the most frequent words', () => {
  it('are exact while there are counters for all', () => {
    const { counted, floor } = summaryOf(['a', 'b', 'a', 'c', 'a', 'b'], 3)
    expect(counted.toSorted((a, b) => b.count - a.count)).toEqual([
      { word: 'a', count: 3, error: 0 },
      { word: 'b', count: 2, error: 0 },
      { word: 'c', count: 1, error: 0 },
    ])
    expect(floor).toBe(1)
  })

  it('gives the place of the one that came least to a newcomer', () => {
    const { counted } = summaryOf(['a', 'a', 'a', 'a', 'b', 'c', 'c', 'd'], 3)
    expect(counted.map(({ word }) => word).sort()).toEqual(['a', 'c', 'd'])
    expect(counted.find(({ word }) => word === 'd')).toEqual({ word: 'd', count: 2, error: 1 })
  })

  it.each([1, 2, 3, 4, 5])('lie within the bounds that are told, stream %i', (seed) => {
    const { list, exact } = stream(20_000, 3000, seed)
    const { counted, floor } = summaryOf(list, 50)
    expect(counted).toHaveLength(50)
    expect(floor).toBeLessThanOrEqual(list.length / 50)
    for (const { word, count, error } of counted) {
      const truly = exact.get(word)!
      expect(count).toBeGreaterThanOrEqual(truly)
      expect(count - error).toBeLessThanOrEqual(truly)
    }
    // Whoever makes up more than 1/m of the stream is there.
    const known = new Set(counted.map(({ word }) => word))
    for (const [word, count] of exact) {
      if (!known.has(word)) expect(count).toBeLessThanOrEqual(floor)
    }
    expect([...exact].some(([word, count]) => known.has(word) && count > list.length / 50)).toBe(true)
  })

  it('keep no more than there are counters, whatever comes', () => {
    const { counted } = summaryOf(
      Array.from({ length: 100_000 }, (_, i) => `flood-${i}`),
      64,
    )
    expect(counted).toHaveLength(64)
  })

  it('of several streams lie within the bounds of all together', () => {
    const parts = [1, 2, 3].map((seed) => stream(20_000, 3000, seed))
    const exact = new Map<string, number>()
    for (const part of parts)
      for (const [word, count] of part.exact) exact.set(word, (exact.get(word) ?? 0) + count)
    const all = merged(parts.map(({ list }) => summaryOf(list, 50)))
    for (const { word, count, error } of all) {
      expect(count).toBeGreaterThanOrEqual(exact.get(word)!)
      expect(count - error).toBeLessThanOrEqual(exact.get(word)!)
    }
  })

  it('are found among a million of which most come once: 19 of the first 20 at least', () => {
    const random = randomSequence(7)
    const keys = 1_000_000
    // Zipf's law: the chance of the k-th is as 1 / k.
    const exact = new Map<string, number>()
    const sketches = Array.from({ length: 3 }, () => new SpaceSaving(512))
    for (let i = 0; i < 600_000; i++) {
      const word = `k${Math.floor(keys ** random())}`
      exact.set(word, (exact.get(word) ?? 0) + 1)
      sketches[i % 3]!.add(word)
    }
    const truly = [...exact].sort((a, b) => b[1] - a[1]).slice(0, 20)
    const found = new Set(
      merged(sketches.map((sketch) => sketch.summary()))
        .slice(0, 20)
        .map(({ word }) => word),
    )
    expect(truly.filter(([word]) => found.has(word)).length).toBeGreaterThanOrEqual(19)
  })

  it('are not pushed out of the first places by a flood of others', () => {
    const flood = Array.from({ length: 50_000 }, (_, i) => (i % 50 === 0 ? 'heavy' : `flood-${i}`))
    const [first] = merged([summaryOf(flood, 64), summaryOf(flood, 64)])
    expect(first!.word).toBe('heavy')
    expect(first!.count).toBeGreaterThanOrEqual(2000)
  })

  it('are first by how often they have certainly come', () => {
    const flood = Array.from({ length: 64 * 500 }, (_, i) => (i % 64 === 0 ? 'heavy' : `flood-${i}`))
    expect(merged([summaryOf(flood, 64)])[0]).toMatchObject({ word: 'heavy', count: 500 })
  })
})
