// Makes a first request right after the start: `node cold-start.js <port> <url | ioredis>`. Prints the decision or
// error.
import { createLimiter, slidingWindow } from 'slidegate'
import { redisStore } from 'slidegate/redis'

const [, , port, kind] = process.argv
const client = kind === 'ioredis' ? new (await import('ioredis')).Redis(Number(port)) : undefined
const store = redisStore(client ?? { url: `redis://127.0.0.1:${port}` })
const limiter = createLimiter({ limits: [slidingWindow({ limit: 100, window: '1h' })], store })
try {
  const { allowed, source } = await limiter.consume(`${process.pid}`)
  process.stdout.write(`${allowed} ${source}\n`)
} catch (error) {
  process.stdout.write(`${error}\n`)
}
await store.close()
client?.disconnect()
