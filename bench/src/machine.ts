import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { arch, cpus, platform, release, totalmem } from 'node:os'
import { dirname, join } from 'node:path'
import { redisVersion } from './redis/info.ts'
import { withRedis } from './redis/with-redis.ts'

/** Measured packages that the root installs, so `bench/package.json` doesn't list them. */
const FROM_THE_ROOT = [
  ...['@grpc/grpc-js', '@hono/node-server', '@nestjs/common', '@nestjs/core', '@nestjs/platform-express'],
  ...['@nestjs/throttler', '@opentelemetry/sdk-metrics', '@opentelemetry/sdk-trace-base', 'autocannon'],
  ...['express', 'fastify', 'hono', 'ioredis', 'pino', 'reflect-metadata', 'rxjs', 'slidegate'],
]

/** The hardware and software of a run. */
export interface Machine {
  readonly versions: Readonly<Record<string, string>>
  readonly cpu: string
  readonly cores: number
  readonly memoryGiB: number
  readonly system: string
}

export async function describeMachine(): Promise<Machine> {
  const { dependencies } = manifest(join(import.meta.dirname, '../package.json'))
  const packages = [...Object.keys(dependencies), ...FROM_THE_ROOT]
  return {
    versions: {
      node: process.version,
      redis: await withRedis(redisVersion),
      ...Object.fromEntries(packages.sort().map((name) => [name, versionOf(name)])),
    },
    cpu: cpus()[0]?.model ?? 'unknown',
    cores: cpus().length,
    memoryGiB: Math.round(totalmem() / 2 ** 30),
    system: `${platform()} ${release()} ${arch()}`,
  }
}

/** Reads the file, because some packages don't export their package.json. */
function versionOf(name: string): string {
  const folders = createRequire(import.meta.url).resolve.paths(name) ?? []
  for (const folder of folders) {
    try {
      return manifest(join(folder, name, 'package.json')).version
    } catch {}
  }
  throw new Error(
    `${name} is not installed. Searched: ${folders.map((folder) => dirname(folder)).join(', ')}`,
  )
}

function manifest(path: string): { version: string; dependencies: Record<string, string> } {
  return JSON.parse(readFileSync(path, 'utf8'))
}
