import type { Policy } from '../peers/peer.ts'
import { connect } from '../redis/with-redis.ts'
import { serve } from '../workers.ts'
import type { Judgement, Served } from './app.ts'
import { appOf, type Framework } from './apps.ts'

export interface ServerOptions {
  readonly framework: Framework
  /** The name of the package. `bare`: no limiter. */
  readonly limiter: string
  readonly policy: Policy
  /** The port of Redis. Without it, the limiter counts in memory. */
  readonly redisPort?: number
}

/** Starts an app, or queries its CPU time or its decisions so far. */
export type ToServer = ServerOptions | 'cpu seconds' | 'judgement'

/** A port, CPU seconds, or the count of correct decisions. */
export type FromServer = number | Judgement

// Some frameworks read NODE_ENV when they load.
process.env.NODE_ENV = 'production'

let served: Served | undefined

serve<ToServer, FromServer>(async (message) => {
  if (message === 'cpu seconds') {
    const { user, system } = process.cpuUsage()
    return (user + system) / 1e6
  }
  if (message === 'judgement') {
    if (served?.judge === undefined) throw new Error('This app does not record its decisions')
    return served.judge()
  }
  const { framework, limiter, policy, redisPort } = message
  const app = await appOf(framework, limiter, policy)
  served = await app(redisPort === undefined ? undefined : connect(`redis://127.0.0.1:${redisPort}`))
  return served.port
})
