// @ts-check
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import { freePort } from './free-port.js'

/**
 * Returns the Redis at REDIS_URL, or starts a temporary server.
 *
 * @returns {Promise<{ url: string, close: () => void }>}
 */
export async function anyRedis() {
  if (process.env.REDIS_URL !== undefined) return { url: process.env.REDIS_URL, close() {} }
  const port = await freePort()
  const words = ['--port', `${port}`, '--bind', '127.0.0.1', '--save', '', '--appendonly', 'no']
  const server = spawn('redis-server', words, { stdio: ['ignore', 'pipe', 'inherit'] })
  const close = () => {
    server.kill()
  }
  process.once('exit', close)
  for (const signal of ['SIGINT', 'SIGTERM']) process.once(signal, () => process.exit(1))
  try {
    await once(server, 'spawn')
  } catch (cause) {
    throw new Error('Found no redis-server on the PATH. Install it, or set REDIS_URL.', {
      cause,
    })
  }
  for await (const line of createInterface(server.stdout)) {
    if (line.includes('Ready to accept connections')) return { url: `redis://127.0.0.1:${port}`, close }
  }
  throw new Error('redis-server exited before it was ready')
}
