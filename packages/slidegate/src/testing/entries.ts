// Conformance cases about sliding windows that store each request separately: sorted sets and streams.
import assert from 'node:assert/strict'
import type { Limiter } from '../limiter.ts'
import type { Entry } from '../limits/limit.ts'
import { slidingWindow } from '../limits/sliding-window.ts'
import { admits, type Cases, casesOfEach, denies, left, leftOfEach, opensIn } from './conformance-case.ts'

/** Returns a key's entries in the limit at this index. */
export async function entriesOf(limiter: Limiter, key: string, place = 0): Promise<readonly Entry[]> {
  return (await limiter.list(key))[place]!.entries
}

export const entries: Cases = casesOfEach(['zset', 'stream'] as const, (log) => {
  const windowOf = (limit: number) => slidingWindow({ limit, window: '10s', log, name: log })
  return {
    async [`${log}: each request counts with its full cost for exactly one window`](scene) {
      const limited = scene.limiter([windowOf(5)])
      await admits(limited, 'k', 2)
      scene.clock.advance(1)
      await admits(limited, 'k', 3)
      const waits = await Promise.all([1, 2, 3, 5, 6].map((cost) => limited.peek('k', { cost })))
      assert.deepEqual(
        waits.map(({ retryAfterMs }) => retryAfterMs),
        [9999, 9999, 10_000, 10_000, Number.POSITIVE_INFINITY],
      )
      await opensIn(scene, 9999, limited, 'k', 2)
      await denies(limited, 'k')
      await opensIn(scene, 1, limited, 'k', 3)
    },

    async [`${log}: the list contains the requests that count, oldest first`]({ clock, limiter }) {
      const limited = limiter([windowOf(9), slidingWindow({ limit: 20, window: '1m' })])
      assert.deepEqual(await limited.list('k'), [{ limit: log, entries: [] }])
      const { atMs } = await admits(limited, 'k', 2)
      clock.advance(4000)
      await admits(limited, 'k', 3)
      await denies(limited, 'k', 5)
      await limited.charge('k', 7)
      const unitsAndTimes = (entries: readonly Entry[]) =>
        entries.map((entry) => [entry.units, entry.atMs - atMs])
      clock.advance(1000)
      const entries = await entriesOf(limited, 'k')
      assert.deepEqual(
        unitsAndTimes(entries).sort((a, b) => a[0]! - b[0]!),
        [
          [2, 0],
          [3, 4000],
          [7, 4000],
        ],
      )
      assert.equal(entries[0]!.atMs, atMs)
      assert.equal(new Set(entries.map(({ name }) => name)).size, 3)
      clock.advance(5000)
      assert.deepEqual((await entriesOf(limited, 'k')).map((entry) => entry.units).sort(), [3, 7])
      clock.advance(4000)
      assert.deepEqual(await entriesOf(limited, 'k'), [])
    },

    async [`${log}: a refund removes its request from any position, and only once`](scene) {
      const { clock } = scene
      const limited = scene.limiter([windowOf(12)])
      const decisions = []
      for (const cost of [1, 2, 3, 4]) {
        decisions.push(await admits(limited, 'k', cost))
        clock.advance(1000)
      }
      const [first, second, third, newest] = decisions
      assert.equal(await limited.refund('k', second!), 2)
      assert.equal(await limited.refund('k', second!), 0)
      assert.equal(await left(limited, 'k'), 4)
      assert.equal((await limited.peek('k', { cost: 5 })).retryAfterMs, 6000)
      assert.equal((await limited.peek('k', { cost: 8 })).retryAfterMs, 8000)
      assert.equal(await limited.refund('k', newest!), 4)
      assert.equal((await limited.peek('k')).resetAfterMs, 8000)
      assert.deepEqual(
        (await entriesOf(limited, 'k')).map(({ units }) => units),
        [1, 3],
      )
      assert.equal(await limited.refund('k', first!), 1)
      await admits(limited, 'k', 9)
      clock.advance(8000)
      assert.equal(await limited.refund('k', third!), 0)
      assert.equal(await left(limited, 'k'), 3)
    },

    async [`${log}: a charge beyond the limit has to expire before the next request is admitted`](scene) {
      const limited = scene.limiter([windowOf(3)])
      await admits(limited, 'k')
      scene.clock.advance(1000)
      await limited.charge('k', 40_000)
      assert.equal((await denies(limited, 'k')).retryAfterMs, 10_000)
      scene.clock.advance(1000)
      await limited.charge('k', 2)
      assert.equal((await denies(limited, 'k')).retryAfterMs, 9000)
      assert.equal((await denies(limited, 'k', 2)).retryAfterMs, 10_000)
      await opensIn(scene, 9000, limited, 'k')
    },

    async [`${log}: each window has its own log, and a request is charged to all windows or to none`](scene) {
      const limited = scene.limiter([
        windowOf(2),
        slidingWindow({ limit: 3, window: '1m', log, name: 'minute' }),
      ])
      await admits(limited, 'k', 2)
      scene.clock.advance(10_000)
      assert.deepEqual((await denies(limited, 'k', 2)).deniedBy, ['minute'])
      assert.equal((await admits(limited, 'k')).remaining, 0)
      const lists = await limited.list('k')
      assert.deepEqual(
        lists.map(({ limit, entries }) => [limit, entries.map(({ units }) => units)]),
        [
          [log, [1]],
          ['minute', [2, 1]],
        ],
      )
      assert.equal((await denies(limited, 'k')).retryAfterMs, 50_000)
    },

    async [`${log}: a shadow limit stores only the requests that fit`]({ limiter }) {
      const shadow = slidingWindow({ limit: 3, window: '10s', log, name: 'shadow', shadow: true })
      const limited = limiter([windowOf(5), shadow])
      const first = await admits(limited, 'k', 2)
      assert.equal((await admits(limited, 'k', 2)).limits[1]!.allowed, false)
      assert.equal((await limited.list('k'))[1]!.entries.length, 1)
      assert.equal(await limited.refund('k', first), 2)
      assert.deepEqual(await leftOfEach(limited, 'k'), [3, 3])
    },

    async [`${log}: after the clock is set back by more than 1 s, no listed time is in the future`]({
      clock,
      limiter,
    }) {
      const limited = limiter([windowOf(9)])
      await admits(limited, 'k')
      clock.advance(10_500)
      await admits(limited, 'k', 2)
      clock.advance(500)
      await admits(limited, 'k', 3)
      clock.advance(-60_000)
      const entries = await entriesOf(limited, 'k')
      assert.deepEqual(
        entries.map(({ units, atMs }) => [units, atMs]),
        [
          [2, clock.now()],
          [3, clock.now()],
        ],
      )
    },

    async [`${log}: after the clock is set back by more than 1 s, all requests count as if made now`](scene) {
      const { clock } = scene
      const limited = scene.limiter([windowOf(5)])
      await admits(limited, 'k', 2)
      clock.advance(9000)
      const last = await admits(limited, 'k')
      clock.advance(2000)
      clock.advance(-3_600_000)
      const denied = await denies(limited, 'k', 4)
      assert.deepEqual([denied.atMs, denied.retryAfterMs, denied.remaining], [clock.now(), 10_000, 2])
      clock.advance(1000)
      // The request was charged at a time that is now in the future.
      assert.equal(await limited.refund('k', last), 0)
      await admits(limited, 'k', 2)
      assert.deepEqual(
        (await entriesOf(limited, 'k')).map(({ units, atMs }) => [units, atMs - clock.now()]).sort(),
        [
          [1, -1000],
          [2, -1000],
          [2, 0],
        ],
      )
      await opensIn(scene, 9000, limited, 'k', 3)
    },
  }
})
