// @ts-check

/**
 * The flags of a process that measures. Its heap is so large that nothing is collected meanwhile. A compiler beside the work
 * would be done at another time on each machine, and what isn't compiled allocates more.
 */
export const FLAGS = [
  '--expose-gc',
  '--min-semi-space-size=256',
  '--max-semi-space-size=256',
  '--no-concurrent-recompilation',
]

/** Rounds before the first that counts: until the compiler has looked at it. */
const WARM_UPS = 3
const ROUNDS = 5

/**
 * Measures bytes allocated per repetition: the least of several rounds.
 *
 * @param {number} times
 * @param {() => unknown} round repeats it `times` times
 */
export async function bytesEach(times, round) {
  for (let i = 0; i < WARM_UPS; i++) await round()
  let least = Number.POSITIVE_INFINITY
  for (let i = 0; i < ROUNDS; i++) {
    globalThis.gc?.()
    const before = process.memoryUsage().heapUsed
    await round()
    least = Math.min(least, (process.memoryUsage().heapUsed - before) / times)
  }
  return least
}
