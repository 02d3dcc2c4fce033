import { Redis } from 'ioredis'

/** Sends one command to the server on a port, on a new connection. Fails instead of retrying. */
export async function ask(port: number, name: string, ...words: (string | number)[]): Promise<unknown> {
  const redis = new Redis(port, '127.0.0.1', {
    lazyConnect: true,
    enableReadyCheck: false,
    disableClientInfo: true,
    retryStrategy: () => null,
    // This is longer than a busy machine may hang.
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

/** Like {@link ask}, for text replies. */
export async function askText(port: number, name: string, ...words: (string | number)[]): Promise<string> {
  return String(await ask(port, name, ...words))
}
