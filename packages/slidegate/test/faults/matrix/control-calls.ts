import { Redis } from 'ioredis'

const EVERY_MS = 5

/**
 * Pings the server on its own connection.
 *
 * The pings go the same way as the limiters' calls, so slow pings show that the machine is slow.
 *
 * Stopping returns how long the slowest one took, in milliseconds.
 */
export async function startControlCalls(port: number): Promise<() => number> {
  const client = new Redis(port, '127.0.0.1', { lazyConnect: true })
  client.on('error', () => {})
  await client.connect()
  const pending = new Set<number>()
  let slowestMs = 0
  const ended = (startMs: number) => {
    pending.delete(startMs)
    slowestMs = Math.max(slowestMs, performance.now() - startMs)
  }
  const timer = setInterval(() => {
    const startMs = performance.now()
    pending.add(startMs)
    client.ping().then(
      () => ended(startMs),
      () => ended(startMs),
    )
  }, EVERY_MS)
  return () => {
    clearInterval(timer)
    pending.forEach(ended)
    client.disconnect()
    return slowestMs
  }
}
