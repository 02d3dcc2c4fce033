import type { Policy } from '../peers/peer.ts'
import { connect } from '../redis/with-redis.ts'
import { serve } from '../workers.ts'
import type { Judgement, Served } from './app.ts'
import { appOf, type Framework } from './apps.ts'

export interface ServerOptions {
  readonly framework: Framework
  /** By name; `bare` is none. */
  readonly limiter: string
  readonly policy: Policy
  /** Left out, the limiter counts in memory. */
  readonly redisPort?: number
}

/** What a server is told: to start an app, or to tell what it has taken or decided so far. */
export type ToServer = ServerOptions | 'cpu seconds' | 'judgement'

/** The port; seconds; or a judgement. */
export type FromServer = number | Judgement

// Before a framework is loaded: some ask for it then.
process.env.NODE_ENV = 'production'

let served: Served | undefined

serve<ToServer, FromServer>(async (told) => {
  if (told === 'cpu seconds') {
    const { user, system } = process.cpuUsage()
    return (user + system) / 1e6
  }
  if (told === 'judgement') {
    if (served?.judge === undefined) throw new Error('this app does not remember what it decided')
    return served.judge()
  }
  const { framework, limiter, policy, redisPort } = told
  const app = await appOf(framework, limiter, policy)
  served = await app(redisPort === undefined ? undefined : connect(`redis://127.0.0.1:${redisPort}`))
  return served.port
})
