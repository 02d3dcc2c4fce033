import { mkdtempSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { StoreConfig } from '../../../packages/server/src/config/schema.ts'

/** A limit that is never reached: all requests are admitted. */
export const LIMIT = 1_000_000

/** Writes the configuration of a measured service. Returns its path. */
export function configFile(store: StoreConfig, limit: number = LIMIT): string {
  const folder = mkdtempSync(join(tmpdir(), 'slidegate-bench-'))
  const unit = `{ unit: minute, requests_per_unit: ${limit} }`
  writeFileSync(
    join(folder, 'bench.yaml'),
    `domain: bench\ndescriptors: [{ key: user, rate_limit: ${unit} }]\n`,
  )
  const file = join(folder, 'slidegate.json')
  const limits = [{ kind: 'slidingWindow', limit, window: '1m' }]
  // Long enough for a busy machine.
  const timeoutMs = 10_000
  const listen = { http: '127.0.0.1:0', grpc: '127.0.0.1:0' }
  writeFileSync(
    file,
    JSON.stringify({
      listen,
      store,
      limiters: { api: { limits, timeoutMs } },
      envoy: { files: ['bench.yaml'], timeoutMs },
    }),
  )
  return file
}

export function portIn(address: string): number {
  return Number(/\d+$/.exec(address)![0])
}
