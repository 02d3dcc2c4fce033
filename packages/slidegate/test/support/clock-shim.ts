import { execFile } from 'node:child_process'
import { mkdtemp, open, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { ask } from './ask.ts'
import { type RedisServer, startRedis } from './redis-server.ts'
import { until } from './until.ts'

/** Returns how far the clock of scripts is ahead of this process's monotonic clock. */
async function aheadMs(port: number): Promise<number> {
  const [seconds, micros] = (await ask(port, 'EVAL', "return redis.call('TIME')", 0)) as [string, string]
  return Number(seconds) * 1000 + Number(micros) / 1000 - performance.now()
}

const run = promisify(execFile)
const SOURCE = fileURLToPath(new URL('clock-shim.c', import.meta.url))

/** A redis-server whose wall clock can be set. */
export interface SteppedRedis extends RedisServer {
  /** How far its clock is ahead of this machine's clock. */
  readonly offsetMs: number
  /** Moves its clock immediately; a negative number moves it back. Steps add up, and survive a restart. */
  step(ms: number): Promise<void>
}

/**
 * Starts a real redis-server with a preloaded shim around its wall clock.
 * `TIME` and key expiry use the shifted clock. Linux only; needs `cc` to build the shim.
 *
 * Redis stores the time at which a key expires. After a step forward, keys expire as if that time had passed: a key
 * that a command names, immediately; all others within about 100 ms. After a step back, keys live longer: their TTL
 * grows by the step. A script sees one time from start to end, for expiry too.
 */
export async function startRedisWithClock(settings: readonly string[] = []): Promise<SteppedRedis> {
  const folder = await mkdtemp(join(tmpdir(), 'slidegate-clock-'))
  const library = join(folder, 'clock-shim.so')
  const path = join(folder, 'offset')
  await run('cc', ['-shared', '-fPIC', '-O2', '-Wall', '-Wextra', '-Werror', '-o', library, SOURCE, '-ldl'])
  const file = await open(path, 'w+')
  let offsetMs = 0

  async function set(ms: number): Promise<void> {
    offsetMs = ms
    const bytes = Buffer.alloc(8)
    bytes.writeBigInt64LE(BigInt(ms) * 1000n)
    await file.write(bytes, 0, 8, 0)
  }

  await set(0)
  const server = await startRedis(settings, { LD_PRELOAD: library, CLOCK_SHIM_FILE: path })
  const { stop } = server
  return Object.defineProperty(
    Object.assign(server, {
      async step(ms: number) {
        const before = await aheadMs(server.port)
        await set(offsetMs + ms)
        // Valkey 9 uses the monotonic clock, and only checks the wall clock now and then.
        const slackMs = Math.max(Math.abs(ms) / 2, 50)
        await until(
          'its clock is set',
          async () => Math.abs((await aheadMs(server.port)) - before - ms) < slackMs,
        )
      },
      async stop() {
        await stop()
        await file.close()
        await rm(folder, { recursive: true, force: true })
      },
    }),
    'offsetMs',
    { get: () => offsetMs },
  ) as unknown as SteppedRedis
}
