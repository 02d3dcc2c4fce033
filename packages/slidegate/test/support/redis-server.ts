import { RESTRICTED } from './access.ts'
import { freePort } from './ports.ts'
import { type ProcessOptions, type RedisProcess, startProcess } from './redis-process.ts'

export { freePort } from './ports.ts'

/** A real redis-server for one test. It uses loopback, a free port and a temporary folder, and persists nothing. */
export interface RedisServer extends RedisProcess {
  readonly url: string
}

/** Command line arguments that all test servers share. */
export const COMMON: readonly string[] = [
  ...['--save', '', '--appendonly', 'no', '--loglevel', 'warning'],
  ...['--user', ...RESTRICTED],
]

/** Starts a redis-server. `settings` are more command line arguments, such as `['--maxmemory', '4mb']`. */
export async function startRedis(
  settings: readonly string[] = [],
  env?: ProcessOptions['env'],
  under?: ProcessOptions['under'],
): Promise<RedisServer> {
  const port = await freePort()
  const process = await startProcess({
    port,
    words: (folder) => [
      ...['--port', `${port}`, '--bind', '127.0.0.1', '--dir', folder],
      ...COMMON,
      ...settings,
    ],
    ...(env && { env }),
    ...(under && { under }),
  })
  return Object.assign(process, { url: `redis://127.0.0.1:${port}` })
}
