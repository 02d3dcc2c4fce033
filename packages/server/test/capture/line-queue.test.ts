// tier: system
import { expect, it } from 'vitest'
import { type LineCounts, LineQueue } from '../../src/capture/line-queue.ts'

/** A queue to something that takes its time, and may fail. */
function slowQueue() {
  const counts: LineCounts = { written: 0, dropped: 0 }
  const kept: string[] = []
  const failures: unknown[] = []
  let release = (): void => {}
  let failure: Error | undefined
  const held = new Promise<void>((resolve) => {
    release = resolve
  })
  const append = async (lines: readonly string[]) => {
    await held
    if (failure) throw failure
    kept.push(...lines)
  }
  const fail = (error: Error | undefined) => {
    failure = error
  }
  const queue = new LineQueue(append, counts, (error) => failures.push(error))
  return { queue, counts, kept, failures, release, fail }
}

it('whoever writes a line never waits; what there is no room for is dropped, and counted', async () => {
  const { queue, counts, kept, release } = slowQueue()
  for (let i = 0; i < 200_000; i++) queue.write(`${i}`)
  expect(counts.written).toBe(0)
  expect(counts.dropped).toBeGreaterThan(100_000)
  release()
  await queue.flush()
  expect(counts.written + counts.dropped).toBe(200_000)
  expect(kept).toHaveLength(counts.written)
  expect(kept).toEqual(kept.toSorted((a, b) => Number(a) - Number(b)))
})

it('long lines take no more room than short ones', async () => {
  const { queue, counts, kept, release } = slowQueue()
  for (let i = 0; i < 50; i++) queue.write('x'.repeat(2 ** 20))
  expect(counts.dropped).toBeGreaterThan(35)
  release()
  await queue.flush()
  expect(kept.length).toBe(50 - counts.dropped)
})

it('what cannot be kept is dropped, and said once until it can be', async () => {
  const { queue, counts, kept, failures, release, fail } = slowQueue()
  release()
  fail(new Error('full'))
  for (let i = 0; i < 3; i++) {
    queue.write('lost')
    await queue.flush()
  }
  fail(undefined)
  queue.write('kept')
  await queue.flush()
  fail(new Error('full again'))
  queue.write('lost')
  await queue.flush()
  expect(failures.map(String)).toEqual(['Error: full', 'Error: full again'])
  expect([kept, counts]).toEqual([['kept'], { written: 1, dropped: 4 }])
})

it('waits for something that hangs no longer than a moment', async () => {
  const { queue, counts } = slowQueue()
  queue.write('hanging')
  const begun = performance.now()
  await queue.flush()
  expect(performance.now() - begun).toBeLessThan(20_000)
  expect(counts.written).toBe(0)
})

it('does not take it for hanging that this process has stood still', async () => {
  const { queue, counts, release } = slowQueue()
  queue.write('late')
  const flushed = queue.flush()
  // Some turns later, as a file answers.
  setTimeout(() => setTimeout(release, 10), 10)
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 2500)
  await flushed
  expect(counts.written).toBe(1)
})
