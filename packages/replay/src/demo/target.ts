// The server that receives the demo's bursts.

import { once } from 'node:events'
import { createServer, type ServerOptions } from 'node:http'
import type { AddressInfo } from 'node:net'
import express from 'express'
import { createLimiter, type Limit, memoryStore } from 'slidegate'
import { rateLimit } from 'slidegate/express'

/** Times of one request at the server, in epoch milliseconds. */
export interface Visit {
  readonly arrivedMs: number
  /** Set if the limiter admitted the request. */
  admittedMs?: number
  answeredMs: number
}

/** Limits the resources that other programs can use if they find the port. */
const BOUNDS: ServerOptions = {
  maxHeaderSize: 8192,
  headersTimeout: 2000,
  requestTimeout: 5000,
  keepAliveTimeout: 2000,
  connectionsCheckingInterval: 500,
}
const MAX_CONNECTIONS = 64
const MAX_HEADERS = 64

/** Maximum number of requests. Further requests are rejected. The demo sends 200. */
const MAX_VISITS = 1000

/** An Express server behind one limit, on a free loopback port. */
export interface Target {
  readonly url: string
  /** All requests so far, in order of arrival. */
  readonly visits: readonly Visit[]
  close(): Promise<void>
}

export async function startTarget(limit: Limit): Promise<Target> {
  const visits: Visit[] = []
  const limiter = createLimiter({ name: 'demo', limits: [limit], store: memoryStore({ clock: Date.now }) })
  const app = express()
  app.use((req, res, next) => {
    const hasBody =
      req.headers['transfer-encoding'] !== undefined || Number(req.headers['content-length'] ?? 0) > 0
    if (hasBody || visits.length === MAX_VISITS) {
      // The rest of the body isn't read.
      res.set('Connection', 'close').sendStatus(hasBody ? 413 : 503)
      return
    }
    const visit: Visit = { arrivedMs: Date.now(), answeredMs: Number.POSITIVE_INFINITY }
    visits.push(visit)
    res.locals.visit = visit
    res.once('finish', () => {
      visit.answeredMs = Date.now()
    })
    next()
  })
  app.use(rateLimit({ limiter }))
  app.get('/', (_req, res) => {
    const visit: Visit = res.locals.visit
    visit.admittedMs = Date.now()
    res.send('admitted\n')
  })
  const server = createServer(BOUNDS, app)
  server.maxConnections = MAX_CONNECTIONS
  server.maxHeadersCount = MAX_HEADERS
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  return {
    url: `http://127.0.0.1:${port}/`,
    visits,
    async close() {
      limiter.close()
      server.close()
      server.closeAllConnections()
      await once(server, 'close')
    },
  }
}
