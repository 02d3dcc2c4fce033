// @ts-check

/**
 * Node flags for a process that measures allocations.
 * The heap is large enough that nothing is collected during a measurement. Concurrent compilation would finish at a
 * different time on each machine, and code that isn't compiled yet allocates more.
 */
export const FLAGS = [
  '--expose-gc',
  '--min-semi-space-size=256',
  '--max-semi-space-size=256',
  '--no-concurrent-recompilation',
]

/** Rounds to run before measuring, so that the code is compiled. */
const WARM_UPS = 3
const ROUNDS = 3

/**
 * Measures bytes allocated per repetition. Returns the minimum of several rounds.
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
