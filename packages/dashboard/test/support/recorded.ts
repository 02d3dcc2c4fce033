import type { Entries } from '../../../server/src/admin/history/records.ts'
import { RedisHistoryStore } from '../../../server/src/admin/history/redis-history-store.ts'
import { RedisLink } from '../../../server/src/admin/redis-link.ts'

const MINUTES_PER_WEEK = 7 * 24 * 60

/** Minutes ago in which no service was running. */
const GAPS = [
  [20, 25],
  [3000, 3300],
] as const

/** Writes a week of history to Redis, with two gaps. It has the last two hours by minute, and the rest by hour. */
export async function recordWeek(
  url: string,
  entriesOf: (minute: number) => Readonly<Record<string, Entries>>,
): Promise<void> {
  const link = new RedisLink({ url }, '/')
  await link.connected()
  const store = new RedisHistoryStore(link, Date.now)
  const now = Math.floor(Date.now() / 60_000)
  for (let ago = MINUTES_PER_WEEK; ago > 0; ago -= ago > 120 ? 60 : 1) {
    if (GAPS.some(([from, to]) => ago >= from && ago <= to)) continue
    const minute = now - ago
    // One minute stands for its hour.
    const weight = ago > 120 ? 60 : 1
    const limiters = Object.entries(entriesOf(minute)).map(([limiter, entries]) => ({
      limiter,
      entries: Object.fromEntries(
        Object.entries(entries).map(([name, [allowed, denied, units, other]]) => [
          name,
          [allowed * weight, denied * weight, units * weight, name === '' ? other * weight : other] as const,
        ]),
      ),
    }))
    await store.add({ process: 'recorded', number: minute, minute, limiters })
  }
  link.close()
}
