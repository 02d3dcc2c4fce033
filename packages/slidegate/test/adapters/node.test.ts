// tier: integration
import { describe, expect, expectTypeOf, it } from 'vitest'
import { type RateLimitOptions, rateLimit } from '../../src/adapters/node.ts'
import type { NodeRequest, NodeResponse } from '../../src/http/node.ts'
import { listen } from './listen.ts'
import { type AdapterUnderTest, adapterSuite } from './suite.ts'

type Args = [req: NodeRequest, res: NodeResponse, next: (error?: unknown) => void]

describe('node:http', () => {
  const adapter: AdapterUnderTest<Args> = {
    async serve(options, { behindProxy = false } = {}) {
      const limits = options.map((each) =>
        rateLimit({ ...(behindProxy && { address: { trust: ['loopback'] } }), ...each }),
      )
      const errors: unknown[] = []
      let served = 0
      const handle = (req: NodeRequest, res: NodeResponse, from: number): void => {
        const limit = limits[from]
        if (limit === undefined) {
          served++
          res.statusCode = Number(req.headers['x-status'] ?? 200)
          const used = req.headers['x-used']
          if (used !== undefined) res.setHeader('x-used', used)
          res.end('served')
          return
        }
        limit(req, res, (error) => {
          if (error === undefined) return handle(req, res, from + 1)
          errors.push(error)
          res.statusCode = 500
          res.end()
        })
      }
      return { ...(await listen((req, res) => handle(req, res, 0))), served: () => served, errors }
    },
    header: (req, name) => req.headers[name] as string | undefined,
    teapot: ({ cost }, _req, res) => {
      res.statusCode = 418
      res.end(`cost ${cost}`)
    },
  }
  adapterSuite(adapter)

  it("types the options with Node's types", () => {
    const right: RateLimitOptions = {
      key: (req) => {
        expectTypeOf(req).toEqualTypeOf<NodeRequest>()
        return req.socket.remoteAddress ?? ''
      },
      onDenied: (decision, req, res, next) => {
        expectTypeOf(decision.deniedBy).toEqualTypeOf<readonly string[]>()
        expectTypeOf(req).toEqualTypeOf<NodeRequest>()
        expectTypeOf(res).toEqualTypeOf<NodeResponse>()
        expectTypeOf(next).toBeFunction()
      },
      limits: (key, req) => (key === req.url ? [] : []),
    }
    // @ts-expect-error a delay is a duration
    const wrong: RateLimitOptions = { denied: { delay: true } }
    // @ts-expect-error networks are strings
    const worse: RateLimitOptions = { deny: [10] }
    expect([right, wrong, worse]).toHaveLength(3)
  })
})
