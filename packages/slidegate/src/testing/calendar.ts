// Conformance cases about calendar windows and windows that start with the first hit.
import assert from 'node:assert/strict'
import { fixedWindow } from '../limits/fixed-window.ts'
import { slidingWindow } from '../limits/sliding-window.ts'
import {
  admits,
  type Cases,
  calendarWindow,
  casesOfEach,
  denies,
  opensIn,
  remainingOf,
} from './conformance-case.ts'

const HOUR_MS = 3_600_000
const DAY_MS = 24 * HOUR_MS

const BERLIN = 'Europe/Berlin'

export const calendar: Cases = {
  ...casesOfEach(
    [
      { what: 'forward', day: '2026-03-29T00:00+01:00', hours: 23 },
      { what: 'back', day: '2026-10-25T00:00+02:00', hours: 25 },
    ],
    ({ what, day, hours }) => ({
      async [`a local day on which the clocks go ${what} has ${hours} hours`](scene) {
        const limited = scene.limiter([await calendarWindow({ limit: 2, unit: 'day', timeZone: BERLIN })])
        const startMs = Date.parse(day)
        scene.clock.set(startMs - 1)
        assert.equal((await admits(limited, 'k', 2)).resetAfterMs, 1)
        await opensIn(scene, 1, limited, 'k')
        assert.equal((await admits(limited, 'k')).resetAfterMs, hours * HOUR_MS)
        assert.equal((await denies(limited, 'k')).retryAfterMs, hours * HOUR_MS)
        await opensIn(scene, hours * HOUR_MS, limited, 'k', 2)
        assert.equal((await denies(limited, 'k')).retryAfterMs, 24 * HOUR_MS)
      },
    }),
  ),

  async 'a calendar month has its actual length'(scene) {
    const limited = scene.limiter([await calendarWindow({ limit: 1, unit: 'month' })])
    scene.clock.set(Date.parse('2027-12-31T00:00Z'))
    await admits(limited, 'k')
    const days = [31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31]
    scene.clock.advance(DAY_MS)
    for (const length of [...days, 31, 28]) {
      assert.equal((await admits(limited, 'k')).resetAfterMs, length * DAY_MS)
      scene.clock.advance(length * DAY_MS - 1)
      assert.equal((await denies(limited, 'k')).retryAfterMs, 1)
      scene.clock.advance(1)
    }
  },

  async "limits with the same calendar share their count, and others don't"(scene) {
    const limited = scene.limiter([
      await calendarWindow({ limit: 3, unit: 'day', timeZone: BERLIN, name: 'three' }),
      await calendarWindow({ limit: 5, unit: 'day', timeZone: BERLIN, name: 'five' }),
      await calendarWindow({ limit: 4, unit: 'day', timeZone: 'Asia/Kathmandu', name: 'elsewhere' }),
      await calendarWindow({ limit: 4, unit: 'day', name: 'shadow', shadow: true }),
      slidingWindow({ limit: 9, window: '1h', name: 'sliding' }),
    ])
    scene.clock.set(Date.parse('2026-07-01T20:00+02:00'))
    await admits(limited, 'k', 3)
    const { limits, deniedBy } = await denies(limited, 'k', 2)
    assert.deepEqual(deniedBy, ['three', 'elsewhere'])
    assert.deepEqual(
      limits.map(({ remaining, retryAfterMs }) => [remaining, retryAfterMs]),
      [
        [0, 4 * HOUR_MS],
        [2, 0],
        [1, HOUR_MS / 4],
        [1, 6 * HOUR_MS],
        [6, 0],
      ],
    )
    // By now it is tomorrow in Kathmandu.
    scene.clock.advance(HOUR_MS)
    assert.deepEqual((await denies(limited, 'k', 2)).deniedBy, ['three'])
  },

  async 'simultaneous requests are admitted to a calendar window in order'(scene) {
    const limited = scene.limiter([await calendarWindow({ limit: 3, unit: 'week', timeZone: BERLIN })])
    const keys = ['a', 'b', 'a', 'a', 'b', 'a', 'a']
    const decisions = await Promise.all(keys.map((key) => limited.consume(key)))
    assert.deepEqual(
      decisions.map(({ allowed, remaining }) => [allowed, remaining]),
      [
        [true, 2],
        [true, 2],
        [true, 1],
        [true, 0],
        [true, 1],
        [false, 0],
        [false, 0],
      ],
    )
  },

  async 'after the clock is set back to an earlier month, later usage still counts'(scene) {
    const limited = scene.limiter([await calendarWindow({ limit: 2, unit: 'month' })])
    scene.clock.set(Date.parse('2026-06-02T00:00Z'))
    await admits(limited, 'k', 2)
    // Setting the clock back within the month changes nothing.
    scene.clock.set(Date.parse('2026-06-01T00:00Z'))
    assert.equal((await denies(limited, 'k')).retryAfterMs, 30 * DAY_MS)
    // If the clock is set to a second before the month, decisions still use the start of the month as their time.
    scene.clock.advance(-1000)
    const { retryAfterMs, atMs } = await denies(limited, 'k')
    assert.deepEqual([retryAfterMs, atMs], [30 * DAY_MS, Date.parse('2026-06-01T00:00Z')])
    scene.clock.set(Date.parse('2026-05-01T00:00Z'))
    assert.equal((await denies(limited, 'k')).retryAfterMs, 31 * DAY_MS)
    await opensIn(scene, 31 * DAY_MS, limited, 'k', 2)
  },

  async 'a first-hit window starts with the first charge'(scene) {
    const limited = scene.limiter([fixedWindow({ limit: 2, window: '10s', align: 'first-hit' })])
    scene.clock.advance(7777)
    // Neither a peek nor a denial starts a window.
    await limited.peek('k')
    assert.equal((await denies(limited, 'k', 3)).resetAfterMs, 0)
    scene.clock.advance(1000)
    assert.equal((await admits(limited, 'k')).resetAfterMs, 10_000)
    scene.clock.advance(9000)
    assert.equal((await admits(limited, 'k')).resetAfterMs, 1000)
    assert.equal((await denies(limited, 'k')).retryAfterMs, 1000)
    await opensIn(scene, 1000, limited, 'k')
    // The next window starts with its first charge, not at the end of the last window.
    scene.clock.advance(14_321)
    assert.equal((await admits(limited, 'k')).resetAfterMs, 10_000)
  },

  async 'around a boundary, first-hit windows admit at most one unit less than twice the limit'(scene) {
    const limited = scene.limiter([fixedWindow({ limit: 5, window: '10s', align: 'first-hit' })])
    await admits(limited, 'k')
    scene.clock.advance(9999)
    await admits(limited, 'k', 4)
    await denies(limited, 'k')
    scene.clock.advance(1)
    await admits(limited, 'k', 5)
    await opensIn(scene, 10_000, limited, 'k', 5)
  },

  async "a refunded first hit doesn't start a window"(scene) {
    const limited = scene.limiter([fixedWindow({ limit: 3, window: '10s', align: 'first-hit' })])
    const first = await admits(limited, 'k', 2)
    scene.clock.advance(4000)
    assert.equal(await limited.refund('k', first, 1), 1)
    // One unit of the first hit is still charged.
    assert.equal((await limited.peek('k')).resetAfterMs, 6000)
    assert.equal(await limited.refund('k', first, 1), 1)
    assert.equal((await admits(limited, 'k', 3)).resetAfterMs, 10_000)
    // A charge made before this window doesn't count in it.
    await opensIn(scene, 10_000, limited, 'k', 2)
    assert.equal(await limited.refund('k', first, 1), 0)
  },

  async 'after the clock is set back, a first-hit window starts again'(scene) {
    const limited = scene.limiter([fixedWindow({ limit: 2, window: '1m', align: 'first-hit' })])
    await admits(limited, 'k', 2)
    scene.clock.advance(-HOUR_MS)
    assert.equal((await denies(limited, 'k')).retryAfterMs, 60_000)
    await opensIn(scene, 60_000, limited, 'k', 2)
  },

  async 'windows of the same length count separately if they start at different times'({ limiter }) {
    const limited = limiter([
      fixedWindow({ limit: 3, window: '1h', name: 'epoch' }),
      fixedWindow({ limit: 2, window: '1h', align: 'first-hit', name: 'first-hit' }),
      await calendarWindow({ limit: 1, unit: 'hour', name: 'hour', shadow: true }),
    ])
    await admits(limited, 'k', 2)
    assert.deepEqual(remainingOf(await denies(limited, 'k')), [1, 0, 1])
  },
}
