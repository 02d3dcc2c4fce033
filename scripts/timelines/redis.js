import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Redis } from 'ioredis'

/**
 * Runs `use` with a temporary redis-server on a Unix socket.
 *
 * @template T
 * @param {(redis: Redis) => Promise<T>} use
 * @returns {Promise<T>}
 */
export async function withRedis(use) {
  const folder = await mkdtemp(join(tmpdir(), 'slidegate-timelines-'))
  const path = join(folder, 'redis.sock')
  const words = ['--port', '0', '--unixsocket', path, '--dir', folder, '--save', '', '--appendonly', 'no']
  const server = spawn('redis-server', words, { stdio: 'ignore' })
  const ended = once(server, 'exit')
  const redis = new Redis({ path, retryStrategy: () => 20 })
  // Errors are expected until it listens.
  redis.on('error', () => {})
  try {
    const failed = ended.then(() => Promise.reject(new Error('redis-server exited')))
    await Promise.race([new Promise((resolve) => redis.once('ready', resolve)), failed])
    return await Promise.race([use(redis), failed])
  } finally {
    redis.disconnect()
    server.kill()
    await ended.catch(() => {})
    await rm(folder, { recursive: true, force: true })
  }
}
