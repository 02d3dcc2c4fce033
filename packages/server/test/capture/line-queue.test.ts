// tier: system
import { expect, it } from 'vitest'
import { type LineCounts, LineQueue } from '../../src/capture/line-queue.ts'

/** Creates a queue with a slow destination that may fail. */
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

it('a write never waits; lines that exceed the queue are dropped and counted', async () => {
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

it('the queue is limited by characters, too', async () => {
  const { queue, counts, kept, release } = slowQueue()
  for (let i = 0; i < 50; i++) queue.write('x'.repeat(2 ** 20))
  expect(counts.dropped).toBeGreaterThan(35)
  release()
  await queue.flush()
  expect(kept.length).toBe(50 - counts.dropped)
})

it('failures drop lines, and only the first in a row is reported', async () => {
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

it('a flush times out if the destination hangs', async () => {
  const { queue, counts } = slowQueue()
  queue.write('hanging')
  const begun = performance.now()
  await queue.flush()
  expect(performance.now() - begun).toBeLessThan(20_000)
  expect(counts.written).toBe(0)
})

it('a flush still works after this process was suspended', async () => {
  const { queue, counts, release } = slowQueue()
  queue.write('late')
  const flushed = queue.flush()
  // Resolves some turns later, like a file.
  setTimeout(() => setTimeout(release, 10), 10)
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 2500)
  await flushed
  expect(counts.written).toBe(1)
})
