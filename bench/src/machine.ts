import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { arch, cpus, loadavg, platform, release, totalmem } from 'node:os'
import { redisVersion } from './redis/info.ts'
import { withRedis } from './redis/with-redis.ts'

export interface Machine {
  readonly versions: Readonly<Record<string, string>>
  readonly cpu: string
  readonly cores: number
  readonly memoryGiB: number
  readonly system: string
  /** Processes that wanted a core at the start, over the last minute: above 0, others were at work. */
  readonly load: number
}

/** What the figures were measured on and with. */
export async function describeMachine(): Promise<Machine> {
  return {
    versions: {
      node: process.version,
      redis: await withRedis(redisVersion),
      ...Object.fromEntries(
        ['slidegate', 'ioredis', 'rate-limiter-flexible'].map((name) => [name, versionOf(name)]),
      ),
    },
    cpu: cpus()[0]?.model ?? 'unknown',
    cores: cpus().length,
    memoryGiB: Math.round(totalmem() / 2 ** 30),
    system: `${platform()} ${release()} ${arch()}`,
    load: loadavg()[0]!,
  }
}

function versionOf(name: string): string {
  const path = createRequire(import.meta.url).resolve(`${name}/package.json`)
  return (JSON.parse(readFileSync(path, 'utf8')) as { version: string }).version
}
