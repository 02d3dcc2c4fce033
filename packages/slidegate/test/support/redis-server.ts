import { RESTRICTED } from './access.ts'
import { freePort } from './ports.ts'
import { type ProcessOptions, type RedisProcess, startProcess } from './redis-process.ts'

export { freePort } from './ports.ts'

/** A real redis-server of this test's own: loopback, a free port, a temporary folder, nothing persisted. */
export interface RedisServer extends RedisProcess {
  readonly url: string
}

/** Command line words that all servers of tests have in common. */
export const COMMON: readonly string[] = [
  ...['--save', '', '--appendonly', 'no', '--loglevel', 'warning'],
  ...['--user', ...RESTRICTED],
]

/** Starts a redis-server; `settings` are further command line words, such as `['--maxmemory', '4mb']`. */
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
