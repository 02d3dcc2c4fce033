// A typical Worker: it creates all limiters when the module is loaded, except the one of the Durable Object.

import { Hono } from 'hono'
import { concurrency, createLimiter, memoryStore, slidingWindow, withDenyCache, withLeases } from 'slidegate'
import { withRateLimit } from 'slidegate/fetch'
import { rateLimit } from 'slidegate/hono'

interface Environment {
  readonly COUNTERS: {
    idFromName(name: string): unknown
    get(id: unknown): { fetch(request: Request): Promise<Response> }
  }
}

const address = { trust: 1, header: 'cf-connecting-ip' } as const
const limits = [slidingWindow({ limit: 2, window: '1h' })]

const handler = withRateLimit(() => new Response('served'), { limits, address })

const app = new Hono()
app.use(rateLimit({ name: 'hono', limits, address }))
app.get('/hono', (c) => c.text('served'))

const everything = createLimiter({
  limits: [slidingWindow({ limit: 9, window: '1h' }), concurrency({ limit: 1, ttl: '1h' })],
  hashKeys: 'correct horse battery staple',
  ban: { after: 9, within: '1h', for: '1h' },
  overrides: true,
  onStoreError: 'local',
  store: withDenyCache(withLeases(memoryStore())),
})

export class Counter {
  readonly limiter = createLimiter({ limits: [slidingWindow({ limit: 1, window: '100ms' })] })

  async fetch(): Promise<Response> {
    // All simultaneous requests except the first wait, with shared timers.
    return Response.json((await this.limiter.wait('everybody')).allowed)
  }
}

// biome-ignore lint/style/noDefaultExport: Workers need it
export default {
  async fetch(request: Request, env: Environment): Promise<Response> {
    const { pathname } = new URL(request.url)
    if (pathname === '/object') {
      return await env.COUNTERS.get(env.COUNTERS.idFromName('one')).fetch(request)
    }
    if (pathname === '/everything') {
      const permit = await everything.acquire('Zo\u00eb')
      const decisions = [permit, await everything.acquire('Zo\u00eb')]
      await permit.release()
      decisions.push(await everything.acquire('Zo\u00eb'))
      return Response.json(decisions.map(({ allowed }) => allowed))
    }
    if (pathname === '/up') return new Response()
    return pathname === '/hono' ? await app.fetch(request) : await handler(request)
  },
}
