import type { RequestListener } from 'node:http'
import { onTestFinished } from 'vitest'
import { listen } from '../../../packages/slidegate/test/adapters/listen.ts'
import { START } from './fake-date.ts'

/** Sends a request to a server of this test. */
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

/** Makes sequential requests. Returns their statuses. */
export async function statuses(
  ask: () => Promise<{ readonly status: number }>,
  requests: number,
): Promise<number[]> {
  const seen: number[] = []
  for (let n = 1; n <= requests; n++) seen.push((await ask()).status)
  return seen
}

/** Makes sequential requests. Returns how many were admitted. */
export async function admitted(
  ask: () => Promise<{ readonly status: number }>,
  requests: number,
): Promise<number> {
  return (await statuses(ask, requests)).filter((status) => status < 400).length
}

/** Makes 1 request at 0 s, 20 at 59.999 s and 20 at 60 s. Returns how many were admitted each time. */
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
