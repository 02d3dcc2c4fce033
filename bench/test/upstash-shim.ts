import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { json } from 'node:stream/consumers'
import type { Redis } from 'ioredis'

/** What `Redis.fromEnv()` of `@upstash/redis` reads, and how to end what answers there. */
export interface UpstashShim {
  readonly env: Readonly<Record<string, string>>
  close(): Promise<void>
}

/** Hands commands that come by HTTP, as those of `@upstash/redis` do, to a real server. */
export async function startUpstashShim(redis: Redis): Promise<UpstashShim> {
  async function answer([command, ...args]: [string, ...(string | number)[]]): Promise<object> {
    // A flag of Upstash's own, which Redis refuses.
    const words = args.map((arg) => `${arg}`.replace(/^#!lua flags=allow-key-locking\n/, ''))
    return await redis.call(command, words).then(
      (result) => ({ result: encoded(result) }),
      ({ message }) => ({ error: message }),
    )
  }

  const server = createServer(async (req, res) => {
    const body = (await json(req)) as [string]
    const isList = Array.isArray(body[0])
    const told = isList ? await Promise.all((body as unknown as [string][]).map(answer)) : await answer(body)
    res.statusCode = 'error' in told ? 400 : 200
    res.end(JSON.stringify(told))
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo
  return {
    env: { UPSTASH_REDIS_REST_URL: `http://127.0.0.1:${port}`, UPSTASH_REDIS_REST_TOKEN: 'none' },
    async close() {
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}

/** Texts as that client asks for them. */
function encoded(result: unknown): unknown {
  if (Array.isArray(result)) return result.map(encoded)
  return typeof result === 'string' && result !== 'OK' ? Buffer.from(result).toString('base64') : result
}
