// tier: integration
import { request } from 'node:http'
import express, { type Request } from 'express'
import { fastify } from 'fastify'
import { describe, expect, it, onTestFinished } from 'vitest'
import { rateLimit as limitExpress } from '../../src/adapters/express.ts'
import { rateLimit as limitFastify } from '../../src/adapters/fastify.ts'
import { routeKey } from '../../src/http/index.ts'
import { slidingWindow } from '../../src/index.ts'
import { listen } from './listen.ts'

const once = { limits: [slidingWindow({ limit: 1, window: '1h' })] }

/** Spellings of `/users/:id` that reach its handler in at least one framework. */
const VARIANTS = [
  '/users/7',
  '/users/7/',
  '/USERS/7',
  '/Users/7',
  '/users/%37',
  '/%75sers/7',
  '//users/7',
  '/users//7',
  '/users/7;x=1',
  '/users;x=1/7',
  '/users/7?x=1',
  '/users/7?',
  '/users/7#x',
  '/./users/7',
  '/x/../users/7',
]

/** Sends the path unchanged: `fetch` would normalize it. */
async function status(url: string, path: string): Promise<number> {
  const { port } = new URL(url)
  return new Promise((resolve, reject) => {
    const sent = request({ host: '127.0.0.1', port, path, agent: false }, (response) => {
      response.resume().on('end', () => resolve(response.statusCode!))
    })
    sent.on('error', reject).end()
  })
}

/** Requests each variant after the limiter has admitted `/users/7`. A variant that is served has bypassed the limiter. */
async function admittedVariants(url: string): Promise<readonly string[]> {
  expect(await status(url, '/users/7')).toBe(200)
  const admitted: string[] = []
  for (const path of VARIANTS) if ((await status(url, path)) === 200) admitted.push(path)
  return admitted
}

describe('CVE-2026-33808: variants of a path are one route', () => {
  describe('Express', () => {
    async function serve(key?: (req: Request) => string): Promise<string> {
      const app = express()
      const handlers = key === undefined ? [] : [limitExpress({ ...once, key })]
      app.get('/users/:id', ...handlers, (_req, res) => void res.send('served'))
      const server = await listen(app)
      onTestFinished(() => server.close())
      return server.url
    }

    it('by the matched route', async () => {
      expect(await admittedVariants(await serve((req) => routeKey(req)))).toEqual([])
    })

    it('but not by the URL, which variants would bypass', async () => {
      expect((await admittedVariants(await serve())).length).toBeGreaterThan(6)
      expect((await admittedVariants(await serve((req) => req.originalUrl))).length).toBeGreaterThan(5)
    })

    it('also within a router, wherever it is mounted', async () => {
      const app = express()
      const router = express.Router()
      const limit = limitExpress({ ...once, key: (req) => routeKey(req, '/api/:tenant') })
      router.get('/users/:id', limit, (_req, res) => void res.send('served'))
      app.use('/api/:tenant', router)
      const server = await listen(app)
      onTestFinished(() => server.close())
      const paths = ['/api/1/users/7', '/API/1/users/7', '/api/2/users/7']
      const answers: number[] = []
      for (const path of paths) answers.push(await status(server.url, path))
      expect(answers).toEqual([200, 429, 429])
    })
  })

  describe('Fastify', () => {
    async function serve(key?: 'route' | 'url'): Promise<string> {
      const routerOptions = {
        caseSensitive: false,
        ignoreTrailingSlash: true,
        ignoreDuplicateSlashes: true,
        useSemicolonDelimiter: true,
      }
      const app = fastify({ routerOptions })
      if (key !== undefined) {
        await app.register(
          limitFastify({ ...once, key: (request) => (key === 'route' ? routeKey(request) : request.url) }),
        )
      }
      app.get('/users/:id', () => 'served')
      const url = await app.listen({ host: '127.0.0.1', port: 0 })
      onTestFinished(() => app.close())
      return url
    }

    it('by the matched route', async () => {
      expect(await admittedVariants(await serve('route'))).toEqual([])
    })

    it('but not by the URL, which variants would bypass', async () => {
      expect((await admittedVariants(await serve())).length).toBeGreaterThan(6)
      expect((await admittedVariants(await serve('url'))).length).toBeGreaterThan(5)
    })

    it('paths without a route count as one route', async () => {
      const url = await serve('route')
      const answers = [
        await status(url, '/none'),
        await status(url, '/nowhere'),
        await status(url, '/users/7'),
      ]
      expect(answers).toEqual([404, 429, 200])
    })
  })
})
