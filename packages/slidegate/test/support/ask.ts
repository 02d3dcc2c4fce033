import { Redis } from 'ioredis'

/** Asks the server on a port one thing, on a connection of its own; fails rather than waits. */
export async function ask(port: number, name: string, ...words: (string | number)[]): Promise<unknown> {
  const redis = new Redis(port, '127.0.0.1', {
    lazyConnect: true,
    enableReadyCheck: false,
    disableClientInfo: true,
    retryStrategy: () => null,
    // Longer than a busy machine may stand still.
    connectTimeout: 10_000,
    commandTimeout: 15_000,
  })
  redis.on('error', () => {})
  try {
    return await redis.call(name, ...words)
  } finally {
    redis.disconnect()
  }
}

/** As {@link ask}, of replies that are text. */
export async function askText(port: number, name: string, ...words: (string | number)[]): Promise<string> {
  return String(await ask(port, name, ...words))
}
