import { execFile } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { allowAll } from '../support/access.ts'
import { FLAGS } from '../support/allocated.js'
import { startRedis } from '../support/redis-server.ts'

export interface Allocated {
  /** Bytes on the client's heap per decision. */
  readonly bytes: number
  /** Calls to Redis per decision. */
  readonly calls?: number
}

/**
 * The bounds of a decision, by the names in measure.js. Repeated measurements differ by 2%.
 *
 * Each bound is the measured figure plus 4%. Lower it when a decision gets cheaper.
 */
export const BOUNDS: Readonly<Record<string, Allocated>> = {
  'memory, one key, admitted': { bytes: 486 },
  'memory, one key, denied': { bytes: 411 },
  'memory, 10,000 keys, admitted': { bytes: 469 },
  'Redis, one key, admitted, lone': { bytes: 8740, calls: 1 },
  'Redis, one key, admitted, 1,024 in flight': { bytes: 985, calls: 0.01 },
  'Redis, one key, denied, lone': { bytes: 8780, calls: 1 },
  'Redis, one key, denied, 1,024 in flight': { bytes: 765, calls: 0.01 },
  'Redis, 10,000 keys, admitted, lone': { bytes: 8885, calls: 1 },
  'Redis, 10,000 keys, admitted, 1,024 in flight': { bytes: 2290, calls: 0.02 },
}

const SCRIPT = fileURLToPath(new URL('measure.js', import.meta.url))

/** Measures in a separate process, with a separate Redis, through ioredis. */
export async function measureAllocations(): Promise<Readonly<Record<string, Allocated>>> {
  const server = await startRedis()
  try {
    await allowAll(server.port)
    const { stdout } = await promisify(execFile)(process.execPath, [...FLAGS, SCRIPT, server.url])
    return JSON.parse(stdout)
  } finally {
    await server.stop()
  }
}
