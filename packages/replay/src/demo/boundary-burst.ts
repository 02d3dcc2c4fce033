// Sends two bursts around the edge of a window, and counts what was let through.

import { setTimeout as delay } from 'node:timers/promises'
import autocannon from 'autocannon'
import type { Limit } from 'slidegate'
import { FullestWindow } from '../counts/fullest-window.ts'
import { startTarget, type Visit } from './target.ts'

const CONNECTIONS = 10

interface Measured {
  /** Requests let through in the fullest window, by the server's own record. */
  readonly fullestWindow: number
  /** Whether each burst lay within half a window of the edge, on its side of it. */
  readonly inPlace: boolean
}

/**
 * Sends a limit's worth of requests just before the edge of a window and as many just after, to a server
 * that holds them to the limit. The first burst begins `leadMs` before the edge, which should be many times
 * what it takes. Fixed windows begin at multiples of their length since the epoch.
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
    throw new Error(`only ${answered} of ${amount} requests were answered, with ${result.errors} errors`)
  }
}

/** A timer may fire a little early. */
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
