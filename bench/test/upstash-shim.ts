import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { json } from 'node:stream/consumers'
import type { Redis } from 'ioredis'

/** The variables that `Redis.fromEnv()` of `@upstash/redis` reads, and a method to stop the server. */
export interface UpstashShim {
  readonly env: Readonly<Record<string, string>>
  close(): Promise<void>
}

/** Starts an HTTP server that passes commands of `@upstash/redis` to a real Redis. */
export async function startUpstashShim(redis: Redis): Promise<UpstashShim> {
  async function answer([command, ...args]: [string, ...(string | number)[]]): Promise<object> {
    // Redis rejects this flag of Upstash.
    const words = args.map((arg) => `${arg}`.replace(/^#!lua flags=allow-key-locking\n/, ''))
    return await redis.call(command, words).then(
      (result) => ({ result: encoded(result) }),
      ({ message }) => ({ error: message }),
    )
  }

  const server = createServer(async (req, res) => {
    const body = (await json(req)) as [string]
    const isList = Array.isArray(body[0])
    const reply = isList ? await Promise.all((body as unknown as [string][]).map(answer)) : await answer(body)
    res.statusCode = 'error' in reply ? 400 : 200
    res.end(JSON.stringify(reply))
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

/** Encodes strings in base64, as the client expects. */
function encoded(result: unknown): unknown {
  if (Array.isArray(result)) return result.map(encoded)
  return typeof result === 'string' && result !== 'OK' ? Buffer.from(result).toString('base64') : result
}
