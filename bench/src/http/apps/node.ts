import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { Redis } from 'ioredis'
import type { Policy } from '../../peers/peer.ts'
import { type CommonScript, FIXED_WINDOW, ZSET_LOG } from '../../redis/scripts.ts'
import { type App, BODY, KEEP_ALIVE_MS, type Served, USER_HEADER } from '../app.ts'
import { slidegateLimiter } from '../limiter.ts'
import { Oracle } from '../oracle.ts'

/** A limiter's decision, and the time it used. */
interface Answer {
  readonly isAdmitted: boolean
  readonly atMs: number
}

type Decide = (user: string) => Promise<Answer>

/** Servers on plain node:http, by limiter. All of them count in Redis and record their decisions. */
export function nodeApps(policy: Policy): Readonly<Record<string, App>> {
  return {
    slidegate: (redis) => {
      const limiter = slidegateLimiter(redis, policy)
      return serve(policy, async (user) => {
        const { allowed, atMs } = await limiter.consume(user)
        return { isAdmitted: allowed, atMs }
      })
    },
    'fixed window': (redis) => scripted(redis, FIXED_WINDOW, policy),
    'ZSET log': (redis) => scripted(redis, ZSET_LOG, policy),
  }
}

/** Passes the time to the script, so that the oracle knows it. */
async function scripted(redis: Redis | undefined, script: CommonScript, policy: Policy): Promise<Served> {
  assert(redis)
  const limiter = await script.open(redis, policy)
  return await serve(policy, async (user) => {
    const atMs = Date.now()
    const [admitted] = await limiter.consume(user, atMs)
    return { isAdmitted: admitted === 1, atMs }
  })
}

async function serve(policy: Policy, decide: Decide): Promise<Served> {
  const oracle = new Oracle(policy)
  const body = JSON.stringify(BODY)
  const server = createServer((req, res) => {
    const user = req.headers[USER_HEADER] as string
    decide(user).then(
      ({ isAdmitted, atMs }) => {
        oracle.record(user, isAdmitted, atMs)
        res.statusCode = isAdmitted ? 200 : 429
        res.setHeader('Content-Type', 'application/json')
        res.end(isAdmitted ? body : '{}')
      },
      (error) => {
        console.error(error)
        res.statusCode = 500
        res.end('failed')
      },
    )
  })
  server.keepAliveTimeout = KEEP_ALIVE_MS
  server.listen(0, '127.0.0.1', 4096)
  await once(server, 'listening')
  return { port: (server.address() as AddressInfo).port, judge: () => oracle.judge() }
}
