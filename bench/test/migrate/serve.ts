import type { RequestListener } from 'node:http'
import { onTestFinished } from 'vitest'
import { listen } from '../../../packages/slidegate/test/adapters/listen.ts'
import { START } from './fake-date.ts'

/** Asks a server of this test's own. */
export type Ask = (path?: string, init?: RequestInit) => Promise<Response>

export async function serve(listener: RequestListener): Promise<Ask> {
  const { url, close } = await listen(listener)
  onTestFinished(close)
  return async (path = '/', init) => {
    const response = await fetch(`${url}${path}`, init)
    await response.clone().arrayBuffer()
    return response
  }
}

/** The statuses of so many requests, one after the other. */
export async function statuses(
  ask: () => Promise<{ readonly status: number }>,
  requests: number,
): Promise<number[]> {
  const told: number[] = []
  for (let n = 1; n <= requests; n++) told.push((await ask()).status)
  return told
}

/** How many of so many requests are let through, one after the other. */
export async function admitted(
  ask: () => Promise<{ readonly status: number }>,
  requests: number,
): Promise<number> {
  return (await statuses(ask, requests)).filter((status) => status < 400).length
}

/** How many pass of one request, of 20 a minute later less a millisecond, and of 20 when the minute is over. */
export async function aroundAnEdge(
  ask: () => Promise<{ readonly status: number }>,
  setTime: (ms: number) => void,
): Promise<number[]> {
  const passed: number[] = []
  for (const [ms, requests] of [
    [START, 1],
    [START + 59_999, 20],
    [START + 60_000, 20],
  ] as const) {
    setTime(ms)
    passed.push(await admitted(ask, requests))
  }
  return passed
}
