import { execFile } from 'node:child_process'
import { mkdtemp, open, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { ask } from './ask.ts'
import { type RedisServer, startRedis } from './redis-server.ts'
import { until } from './until.ts'

/** By how much the clock that scripts see is ahead of this process's monotonic one. */
async function aheadMs(port: number): Promise<number> {
  const [seconds, micros] = (await ask(port, 'EVAL', "return redis.call('TIME')", 0)) as [string, string]
  return Number(seconds) * 1000 + Number(micros) / 1000 - performance.now()
}

const run = promisify(execFile)
const SOURCE = fileURLToPath(new URL('clock-shim.c', import.meta.url))

/** A redis-server whose wall clock can be set. */
export interface SteppedRedis extends RedisServer {
  /** By how much its clock is ahead of this machine's. */
  readonly offsetMs: number
  /** Moves its clock, at once; back if negative. Steps add up, and outlive a restart. */
  step(ms: number): Promise<void>
}

/**
 * A real redis-server with a preloaded shim around its wall clock, which is what `TIME` says and what keys expire by.
 * Linux only; the program `cc` builds the shim.
 *
 * Redis stores at what time a key expires, not after how long. After a step forward keys are gone as if that time had
 * passed: at the next command that names them, and others within some 100 ms. After a step back they stay the longer:
 * their TTL grows by the step. Scripts see one time from their start to their end, with regard to expiry too.
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
        // Valkey 9 goes on by the monotonic clock, and looks now and then whether the other was set.
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
