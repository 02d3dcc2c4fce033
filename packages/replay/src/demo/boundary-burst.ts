// Sends two bursts around a window boundary, and counts admitted requests.

import { setTimeout as delay } from 'node:timers/promises'
import autocannon from 'autocannon'
import type { Limit } from 'slidegate'
import { FullestWindow } from '../counts/fullest-window.ts'
import { startTarget, type Visit } from './target.ts'

const CONNECTIONS = 10

interface Measured {
  /** Admitted requests in the fullest window, as recorded by the server. */
  readonly fullestWindow: number
  /** Whether each burst was on its side of the boundary, within half a window. */
  readonly inPlace: boolean
}

/**
 * Sends `limit` requests just before a window boundary and the same number just after it.
 *
 * `leadMs` is the time from the first burst's start to the boundary. It should be many times the burst's
 * duration. Fixed windows start at multiples of their length since the epoch.
 */
export async function measureBoundaryBurst(limit: Limit, leadMs: number): Promise<Measured> {
  const target = await startTarget(limit)
  try {
    const { windowMs } = limit
    const edgeMs = Math.ceil((Date.now() + leadMs) / windowMs) * windowMs
    await waitUntil(edgeMs - leadMs)
    await sendBurst(target.url, limit.limit)
    const before = target.visits.slice()
    await waitUntil(edgeMs)
    await sendBurst(target.url, limit.limit)
    const after = target.visits.slice(before.length)
    return {
      fullestWindow: fullestWindow(target.visits, windowMs),
      inPlace: within(before, edgeMs - windowMs / 2, edgeMs) && within(after, edgeMs, edgeMs + windowMs / 2),
    }
  } finally {
    await target.close()
  }
}

async function sendBurst(url: string, amount: number): Promise<void> {
  const result = await autocannon({ url, amount, connections: CONNECTIONS, sampleInt: 20 })
  const answered = result['2xx'] + result['4xx']
  if (answered !== amount || result.errors > 0) {
    throw new Error(`only ${answered} of ${amount} requests got a response, with ${result.errors} errors`)
  }
}

/** Loops, because a timer may fire early. */
async function waitUntil(timeMs: number): Promise<void> {
  while (Date.now() < timeMs) await delay(timeMs - Date.now())
}

function within(visits: readonly Visit[], fromMs: number, toMs: number): boolean {
  return visits.every(({ arrivedMs, answeredMs }) => arrivedMs >= fromMs && answeredMs < toMs)
}

function fullestWindow(visits: readonly Visit[], windowMs: number): number {
  const fullest = new FullestWindow(windowMs)
  const admitted = visits.flatMap(({ admittedMs }) => admittedMs ?? []).sort((a, b) => a - b)
  for (const timeMs of admitted) fullest.add('demo', timeMs)
  return fullest.count
}
