// tier: system
import got from 'got'
import ky from 'ky'
import { Agent, interceptors, RetryAgent, request as undiciRequest } from 'undici'
import { describe, expect, it, onTestFinished } from 'vitest'
import { rateLimit } from '../../src/adapters/node.ts'
import type { NodeRequest, NodeResponse } from '../../src/http/node.ts'
import { memoryStore, slidingWindow } from '../../src/index.ts'
import { listen } from '../adapters/listen.ts'

// Other HTTP clients that retry after Retry-After, on the real clock. A client that retries too early gets another denial; one
// that retries more than a second late has misread the header.

/** How late a timer may be on a busy machine, in milliseconds. */
const SLACK_MS = 10_000

async function serve(): Promise<{
  readonly url: string
  readonly seen: { readonly status: number; readonly atMs: number }[]
}> {
  const seen: { status: number; atMs: number }[] = []
  // The clock is stopped until the first denial, so the second request arrives within the window.
  const clock = () => 1_700_000_000_000 + (seen[1] === undefined ? 0 : performance.now() - seen[1].atMs)
  const store = memoryStore({ clock })
  const limit = rateLimit({ limits: [slidingWindow({ limit: 1, window: '1s' })], store })
  const server = await listen((req: NodeRequest, res: NodeResponse) => {
    res.once('finish', () => seen.push({ status: res.statusCode, atMs: performance.now() }))
    limit(req, res, () => res.end('served'))
  })
  onTestFinished(() => server.close())
  return { url: server.url, seen }
}

describe('Retry-After is obeyed by', () => {
  it.each<[string, (url: string) => Promise<string>]>([
    ['got', (url) => got(url, { retry: { limit: 3 } }).text()],
    ['ky', (url) => ky(url, { retry: { limit: 3 }, timeout: false }).text()],
    [
      "undici's RetryAgent",
      async (url) => {
        const dispatcher = new RetryAgent(new Agent(), { statusCodes: [429], maxRetries: 3 })
        onTestFinished(() => dispatcher.close())
        return await (await undiciRequest(url, { dispatcher })).body.text()
      },
    ],
    [
      "undici's retry interceptor",
      async (url) => {
        const dispatcher = new Agent().compose(interceptors.retry({ statusCodes: [429], maxRetries: 3 }))
        onTestFinished(() => dispatcher.close())
        return await (await undiciRequest(url, { dispatcher })).body.text()
      },
    ],
  ])('%s', async (_, ask) => {
    const { url, seen } = await serve()
    expect(await ask(url)).toBe('served')
    expect(await ask(url)).toBe('served')
    expect(seen.map(({ status }) => status)).toEqual([200, 429, 200])
    const waitedMs = seen[2]!.atMs - seen[1]!.atMs
    expect(waitedMs).toBeGreaterThan(500)
    expect(waitedMs).toBeLessThan(1000 + SLACK_MS)
  })
})
