// tier: system
import { describe, expect, it } from 'vitest'
import { randomSequence } from '../../../replay/test/support/logs.ts'
import { merged, SpaceSaving, type Summary } from '../../src/admin/space-saving.ts'

/** Returns a stream with few frequent words and many rare ones, and the exact counts. */
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
  const { floor, counted } = sketch.summary()
  // Removes the empty label and its separator.
  return { floor, counted: counted.map((each) => ({ ...each, word: each.word.replace(/^=/, '') })) }
}

/** Returns a function that draws ranks from a Zipf distribution. Rank k - 1 has a weight of 1 / k^exponent. */
function zipf(keys: number, exponent: number, seed: number): () => number {
  const random = randomSequence(seed)
  const upTo = new Float64Array(keys)
  let all = 0
  for (let rank = 0; rank < keys; rank++) {
    all += 1 / (rank + 1) ** exponent
    upTo[rank] = all
  }
  return () => {
    const wanted = random() * all
    let [low, high] = [0, keys - 1]
    while (low < high) {
      const middle = (low + high) >> 1
      if (upTo[middle]! < wanted) low = middle + 1
      else high = middle
    }
    return low
  }
}

describe('the most frequent words', () => {
  it('get exact counts while there are counters for all words', () => {
    const { counted, floor } = summaryOf(['a', 'b', 'a', 'c', 'a', 'b', 'd'], 4)
    expect(counted.toSorted((a, b) => b.count - a.count)).toEqual([
      { word: 'a', count: 3, error: 0 },
      { word: 'b', count: 2, error: 0 },
      { word: 'c', count: 1, error: 0 },
      { word: 'd', count: 1, error: 0 },
    ])
    expect(floor).toBe(1)
  })

  it('lose the rarest to a new word that may be as frequent', () => {
    const { counted } = summaryOf(['a', 'a', 'b', 'b', 'c', 'c', 'd', 'd', 'e', 'e', 'e'], 4)
    expect(counted).toHaveLength(4)
    expect(counted.find(({ word }) => word === 'e')).toEqual({ word: 'e', count: 3, error: 1 })
  })

  it('differ by label even if the words are equal', () => {
    const sketch = new SpaceSaving(4)
    sketch.add('ann', 1, 'user')
    sketch.add('ann', 1, 'team')
    sketch.add('ann', 1, 'team')
    expect(sketch.summary().counted).toEqual([
      { word: 'user=ann', count: 1, error: 0 },
      { word: 'team=ann', count: 2, error: 0 },
    ])
  })

  it.each([1, 2, 3, 4, 5])('get counts within the reported bounds, stream %i', (seed) => {
    const { list, exact } = stream(20_000, 3000, seed)
    const { counted, floor } = summaryOf(list, 64)
    expect(counted).toHaveLength(64)
    expect(floor).toBeLessThanOrEqual(list.length / 64)
    for (const { word, count, error } of counted) {
      const truly = exact.get(word)!
      expect(count).toBeGreaterThanOrEqual(truly)
      expect(count - error).toBeLessThanOrEqual(truly)
    }
    // Every word that makes up more than 1/m of the stream is counted.
    const known = new Set(counted.map(({ word }) => word))
    for (const [word, count] of exact) {
      if (!known.has(word)) expect(count).toBeLessThanOrEqual(floor)
    }
    expect([...exact].some(([word, count]) => known.has(word) && count > list.length / 64)).toBe(true)
  })

  it('never outnumber the counters', () => {
    const { counted } = summaryOf(
      Array.from({ length: 100_000 }, (_, i) => `flood-${i}`),
      64,
    )
    expect(counted).toHaveLength(64)
  })

  it('get counts within the merged bounds of several streams', () => {
    const parts = [1, 2, 3].map((seed) => stream(20_000, 3000, seed))
    const exact = new Map<string, number>()
    for (const part of parts)
      for (const [word, count] of part.exact) exact.set(word, (exact.get(word) ?? 0) + count)
    const all = merged(parts.map(({ list }) => summaryOf(list, 64)))
    for (const { word, count, error } of all) {
      expect(count).toBeGreaterThanOrEqual(exact.get(word)!)
      expect(count - error).toBeLessThanOrEqual(exact.get(word)!)
    }
  })

  it.each([0.8, 1, 1.2])(
    'include 19 of the top 20 among a million Zipf-distributed keys, exponent %f',
    (exponent) => {
      const keys = 1_000_000
      const draw = zipf(keys, exponent, 7)
      const exact = new Uint32Array(keys)
      const alone = new SpaceSaving(512)
      const three = Array.from({ length: 3 }, () => new SpaceSaving(512))
      for (let i = 0; i < 1_000_000; i++) {
        const key = draw()
        exact[key]!++
        const word = `key-${key}`
        alone.add(word)
        three[i % 3]!.add(word)
      }
      const truly = Array.from(exact.keys())
        .sort((a, b) => exact[b]! - exact[a]!)
        .slice(0, 20)
        .map((key) => `=key-${key}`)
      for (const sketches of [[alone], three]) {
        const found = merged(sketches.map((sketch) => sketch.summary())).slice(0, 20)
        const words = new Set(found.map(({ word }) => word))
        expect(truly.filter((word) => words.has(word)).length).toBeGreaterThanOrEqual(19)
      }
    },
  )

  it('keep their rank during a flood of rare words', () => {
    const flood = Array.from({ length: 50_000 }, (_, i) => (i % 50 === 0 ? 'heavy' : `flood-${i}`))
    const [first] = merged([summaryOf(flood, 64), summaryOf(flood, 64)])
    expect(first!.word).toBe('heavy')
    expect(first!.count).toBeGreaterThanOrEqual(2000)
  })

  it('rank by their lower bound', () => {
    const flood = Array.from({ length: 64 * 500 }, (_, i) => (i % 64 === 0 ? 'heavy' : `flood-${i}`))
    expect(merged([summaryOf(flood, 64)])[0]).toMatchObject({ word: 'heavy', count: 500 })
  })
})
