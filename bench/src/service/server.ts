import { pino } from 'pino'
import type { Config } from '../../../packages/server/src/config/schema.ts'
import { consumeBody } from '../../../packages/server/src/http/consume.ts'
import { startService } from '../../../packages/server/src/service/running.ts'
import { serve } from '../workers.ts'

// Before the framework is loaded.
process.env.NODE_ENV = 'production'

export const CONSTANT_PATH = '/constant'

/** A decision that nobody has made. */
const CONSTANT = {
  ...{ limiter: 'api', allowed: true, cost: 1, remaining: 99_999, retryAfterMs: 0, resetAfterMs: 60_000 },
  ...{ deniedBy: [], source: 'store', atMs: 1_700_000_000_000 },
  limits: [
    {
      ...{ name: '100000-per-1m', limit: 100_000, windowMs: 60_000, precisionMs: 1, shadow: false },
      ...{ allowed: true, remaining: 99_999, retryAfterMs: 0, resetAfterMs: 60_000 },
    },
  ],
}

/** What a service is told: to start, or to tell what it has taken so far. */
export type ToService = { readonly config: Config } | 'cpu seconds'

/** The port; or seconds. */
serve<ToService, number>(async (told) => {
  if (told === 'cpu seconds') {
    const { user, system } = process.cpuUsage()
    return (user + system) / 1e6
  }
  const { httpUrl } = await startService({
    loaded: { config: told.config, folder: process.cwd(), files: [] },
    log: pino({ level: 'silent' }),
    environment: {},
    // The same server, the same checks, and the answer is known.
    extend: (app) =>
      app.post(CONSTANT_PATH, { config: { role: 'check' }, schema: { body: consumeBody } }, (_, reply) =>
        reply.send(CONSTANT),
      ),
  })
  return Number(new URL(httpUrl).port)
})
