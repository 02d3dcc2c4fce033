import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type Logger, pino } from 'pino'
import type { Config } from '../../../src/config/schema.ts'
import { type Domains, readDomains } from '../../../src/envoy/domains.ts'
import { type RunningService, startService } from '../../../src/service/running.ts'

/** Files in the format of envoyproxy/ratelimit, by name. */
export type Files = Readonly<Record<string, string>>

export interface EnvoyService extends RunningService, AsyncDisposable {
  readonly grpcAddress: string
  /** Replaces the files. */
  change(files: Files, config?: Partial<Config>): void
}

/** Returns the domains of a folder with these files. */
export function domainsIn(files: Files): Domains {
  const folder = mkdtempSync(join(tmpdir(), 'slidegate-envoy-'))
  try {
    for (const [name, text] of Object.entries(files)) writeFileSync(join(folder, name), text)
    return readDomains(['.'], folder)
  } finally {
    rmSync(folder, { recursive: true })
  }
}

/** Starts a service in this process with these domains, on free loopback ports. Stop it with `await using`. */
export async function envoyService(
  files: Files,
  config: Partial<Config> = {},
  log: Logger = pino({ level: 'silent' }),
): Promise<EnvoyService> {
  const whole = (changed: Partial<Config> = {}): Config => ({
    limiters: {},
    ...config,
    ...changed,
    envoy: { files: ['.'], ...config.envoy, ...changed.envoy },
    listen: { http: '127.0.0.1:0', grpc: '127.0.0.1:0', ...config.listen },
  })
  const loaded = (given: Files, changed?: Partial<Config>) => ({
    config: whole(changed),
    folder: tmpdir(),
    files: [],
    domains: domainsIn(given),
  })
  const running = await startService({ loaded: loaded(files), log, environment: {} })
  return {
    ...running,
    grpcAddress: running.grpcAddress!,
    change: (given, changed) => running.reload(loaded(given, changed)),
    [Symbol.asyncDispose]: () => running.stop(),
  }
}
