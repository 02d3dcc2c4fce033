/** Returns `count` keys like those of a real application. */
export function callers(count: number): string[] {
  return Array.from({ length: count }, (_, number) => `user:${number}`)
}

/** Returns a generator of random indices below `count`, which are the same in every run. */
export function anyOf(count: number): () => number {
  let state = 0x9e3779b9
  return () => {
    state ^= state << 13
    state ^= state >>> 17
    state ^= state << 5
    return (state >>> 0) % count
  }
}

/** Returns a generator that loops through the indices below `count` in order. */
export function inTurn(count: number): () => number {
  let next = 0
  return () => {
    const index = next
    next = next + 1 === count ? 0 : next + 1
    return index
  }
}
