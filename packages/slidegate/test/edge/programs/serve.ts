// Serves with each adapter and several options on free loopback ports, which it prints. Bun and Deno use their own servers for
// Fetch API handlers.

import { once } from 'node:events'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import express from 'express'
import { fastify } from 'fastify'
import { Hono } from 'hono'
import Koa from 'koa'
import { type Limit, slidingWindow } from 'slidegate'
import { rateLimit as expressLimit } from 'slidegate/express'
import { rateLimit as fastifyLimit } from 'slidegate/fastify'
import { withRateLimit } from 'slidegate/fetch'
import { rateLimit as honoLimit } from 'slidegate/hono'
import type { DeniedPolicy } from 'slidegate/http'
import { rateLimit as koaLimit } from 'slidegate/koa'
import { rateLimit as nodeLimit } from 'slidegate/node'

const LOOPBACK = '127.0.0.1'

type Handler = (request: Request, ...rest: unknown[]) => Response | Promise<Response>

const { Bun, Deno } = globalThis as unknown as {
  Bun?: { serve(options: object): { readonly port: number } }
  Deno: { serve(options: object, handler: Handler): { readonly addr: { readonly port: number } } }
}

/** Returns the port. */
function serveHandler(handler: Handler): number {
  if (Bun !== undefined) return Bun.serve({ port: 0, hostname: LOOPBACK, fetch: handler }).port
  return Deno.serve({ port: 0, hostname: LOOPBACK, onListen() {} }, handler).addr.port
}

async function listening(server: Server): Promise<number> {
  await once(server, 'listening')
  return (server.address() as AddressInfo).port
}

interface Options {
  readonly limits: readonly Limit[]
  readonly denied?: DeniedPolicy
  readonly refundIf?: 'successful'
}

const ADAPTERS: Readonly<Record<string, (options: Options) => number | Promise<number>>> = {
  fetch: (options) => serveHandler(withRateLimit(() => new Response('served'), options)),
  hono: (options) => {
    const app = new Hono()
    app.use(honoLimit(options))
    app.get('/', (c) => c.text('served'))
    return serveHandler(app.fetch as Handler)
  },
  node: (options) => {
    const limited = nodeLimit(options)
    const server = createServer((req, res) => limited(req, res, () => res.end('served')))
    return listening(server.listen(0, LOOPBACK))
  },
  express: (options) => {
    const app = express()
    app.use(expressLimit(options))
    app.get('/', (_req, res) => void res.send('served'))
    return listening(app.listen(0, LOOPBACK))
  },
  koa: (options) => {
    const app = new Koa()
    app.use(koaLimit(options))
    app.use((ctx) => {
      ctx.body = 'served'
    })
    return listening(app.listen(0, LOOPBACK))
  },
  fastify: async (options) => {
    const app = fastify()
    app.register(fastifyLimit(options))
    app.get('/', () => 'served')
    await app.listen({ port: 0, host: LOOPBACK })
    return (app.server.address() as AddressInfo).port
  },
}

const OPTIONS: Readonly<Record<string, Omit<Options, 'limits'>>> = {
  rejecting: {},
  queueing: { denied: { queue: 1, maxWait: '1ms' } },
  refunding: { refundIf: 'successful' },
}

const ports: Record<string, number> = {}
for (const [adapter, serve] of Object.entries(ADAPTERS)) {
  for (const [name, options] of Object.entries(OPTIONS)) {
    const limits = [slidingWindow({ limit: 2, window: '1h' })]
    ports[`${adapter} ${name}`] = await serve({ limits, ...options })
  }
}
console.log(JSON.stringify(ports))
