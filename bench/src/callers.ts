/** The names of `count` callers: keys as a user of the library would give them. */
export function callers(count: number): string[] {
  return Array.from({ length: count }, (_, number) => `user:${number}`)
}

/** Indices below `count`, each as likely as any other, the same in every run of the bench. */
export function anyOf(count: number): () => number {
  let state = 0x9e3779b9
  return () => {
    state ^= state << 13
    state ^= state >>> 17
    state ^= state << 5
    return (state >>> 0) % count
  }
}

/** Indices below `count`, one after the other, round and round. */
export function inTurn(count: number): () => number {
  let next = 0
  return () => {
    const index = next
    next = next + 1 === count ? 0 : next + 1
    return index
  }
}
