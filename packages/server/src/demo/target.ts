import { once } from 'node:events'
import type { AddressInfo } from 'node:net'
import express from 'express'
import { createLimiter, type Limit, memoryStore } from 'slidegate'
import { rateLimit } from 'slidegate/express'

/** What the server saw of one request, in epoch milliseconds. */
export interface Visit {
  readonly arrivedMs: number
  /** When the limiter had let it through, if it did. */
  admittedMs?: number
  answeredMs: number
}

/** An Express server behind one limit, on a free port of the loopback address. */
export interface Target {
  readonly url: string
  /** All requests so far, as they arrived. */
  readonly visits: readonly Visit[]
  close(): Promise<void>
}

export async function startTarget(limit: Limit): Promise<Target> {
  const visits: Visit[] = []
  const limiter = createLimiter({ name: 'demo', limits: [limit], store: memoryStore({ clock: Date.now }) })
  const app = express()
  app.use((_req, res, next) => {
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
    res.send('let through\n')
  })
  const server = app.listen(0, '127.0.0.1')
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
