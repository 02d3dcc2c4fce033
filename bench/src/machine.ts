import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { arch, cpus, platform, release, totalmem } from 'node:os'
import { dirname, join } from 'node:path'
import { redisVersion } from './redis/info.ts'
import { withRedis } from './redis/with-redis.ts'

/** What the figures were measured on and with. */
export interface Machine {
  readonly versions: Readonly<Record<string, string>>
  readonly cpu: string
  readonly cores: number
  readonly memoryGiB: number
  readonly system: string
}

export async function describeMachine(): Promise<Machine> {
  const { dependencies } = manifest(join(import.meta.dirname, '../package.json'))
  return {
    versions: {
      node: process.version,
      redis: await withRedis(redisVersion),
      ...Object.fromEntries(Object.keys(dependencies).map((name) => [name, versionOf(name)])),
    },
    cpu: cpus()[0]?.model ?? 'unknown',
    cores: cpus().length,
    memoryGiB: Math.round(totalmem() / 2 ** 30),
    system: `${platform()} ${release()} ${arch()}`,
  }
}

/** Of what is installed; some packages do not let their manifest be required. */
function versionOf(name: string): string {
  const folders = createRequire(import.meta.url).resolve.paths(name) ?? []
  for (const folder of folders) {
    try {
      return manifest(join(folder, name, 'package.json')).version
    } catch {}
  }
  throw new Error(
    `${name} is not installed, in none of ${folders.map((folder) => dirname(folder)).join(', ')}`,
  )
}

function manifest(path: string): { version: string; dependencies: Record<string, string> } {
  return JSON.parse(readFileSync(path, 'utf8'))
}
