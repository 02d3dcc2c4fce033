import { setTimeout as delay } from 'node:timers/promises'
import type { Redis } from 'ioredis'
import type { Policy } from '../peers/peer.ts'
import { judge, type Seen, type Verdict } from './judge.ts'
import { machineMs, packageSubjects, type Subject, subjectsWithTime } from './limiters.ts'

const POLICY: Policy = { limit: 100, windowMs: 1000 }
const KEY = 'user:1'

/** Concurrent requests, and their time after the start of a fixed window. */
interface Burst {
  readonly afterMs: number
  readonly requests: number
}

/**
 * Traffic on which each inexact limiter admits the most.
 *
 * One request opens the window. The first burst comes near the window's end, just before the end of a sixtieth of the window. The
 * next burst comes after the window's end. Requests continue, and the last burst comes less than a window after the first.
 */
const BURSTS: readonly Burst[] = [
  { afterMs: 0, requests: 1 },
  { afterMs: 914, requests: 200 },
  { afterMs: 1050, requests: 200 },
  ...Array.from({ length: 75 }, (_, i) => ({ afterMs: 1100 + 10 * i, requests: 3 })),
  { afterMs: 1902, requests: 200 },
]

/** The bursts for the real clock. The last burst is omitted, because it needs exact timing. */
const REAL_BURSTS = BURSTS.slice(0, -1)

export async function measureBurst(redis: Redis): Promise<Verdict[]> {
  const verdicts: Verdict[] = []
  for (const limiter of await subjectsWithTime(redis, POLICY)) verdicts.push(await byPassedTime(limiter))
  // Runs all packages concurrently, because each gets few requests.
  const packages = await packageSubjects(redis, POLICY)
  verdicts.push(...(await Promise.all(packages.map(byRealTime))))
  return verdicts
}

async function byPassedTime(limiter: Subject): Promise<Verdict> {
  const startMs = Math.ceil(Date.now() / POLICY.windowMs) * POLICY.windowMs
  const seen: Seen[] = []
  for (const { afterMs, requests } of BURSTS) {
    seen.push(...(await ask(limiter, requests, startMs + afterMs)))
  }
  limiter.close?.()
  return judge(limiter, seen, POLICY)
}

async function byRealTime(limiter: Subject): Promise<Verdict> {
  const startMs = machineMs()
  const answers: Promise<Seen[]>[] = []
  for (const { afterMs, requests } of REAL_BURSTS) {
    await delay(Math.max(0, startMs + afterMs - machineMs()))
    answers.push(ask(limiter, requests, 0))
  }
  const seen = await Promise.all(answers)
  limiter.close?.()
  return judge(limiter, seen.flat(), POLICY)
}

async function ask(limiter: Subject, requests: number, atMs: number): Promise<Seen[]> {
  if (!limiter.isOneByOne) {
    return Promise.all(Array.from({ length: requests }, () => limiter.ask(KEY, atMs)))
  }
  const seen: Seen[] = []
  for (let i = 0; i < requests; i++) seen.push(await limiter.ask(KEY, atMs))
  return seen
}
