import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import { allowAll } from './access.ts'
import { ask, askText } from './ask.ts'
import { type RedisServer, startRedis } from './redis-server.ts'

/** A redis-server that counts the instructions it executes. It is about 50 times slower than usual. */
export interface CountingRedis extends RedisServer {
  /** Counts the main thread's instructions while `use` runs. */
  count(use: () => Promise<unknown>): Promise<number>
}

const run = promisify(execFile)

const CALLGRIND = ['valgrind', '--tool=callgrind', '--callgrind-out-file=/dev/null', '--quiet']

/**
 * Starts a server without the ACL restrictions of other test servers. Periodic jobs are paused, because they would
 * count.
 */
export async function startCountingRedis(): Promise<CountingRedis> {
  await run('valgrind', ['--version']).catch((cause) => {
    throw new Error("valgrind isn't installed. It is needed to count instructions.", { cause })
  })
  const server = await startRedis(['--hz', '1', '--enable-debug-command', 'local'], undefined, CALLGRIND)
  await allowAll(server.port)
  await ask(server.port, 'DEBUG', 'PAUSE-CRON', 1)
  return Object.assign(server, {
    async count(use: () => Promise<unknown>) {
      const before = await executed(server.pid)
      await use()
      return (await executed(server.pid)) - before
    },
  })
}

/** Returns the main thread's instructions since the start. */
async function executed(pid: number): Promise<number> {
  const words = [`--pid=${pid}`, '--max-invoke-ms=1', 'status', 'internal']
  const { stdout } = await run('vgdb', words)
  const found = /^events-1: (\d+)/m.exec(stdout)
  if (found === null) throw new Error(`valgrind reported no count: ${stdout}`)
  return Number(found[1])
}

/** Number of keys. Those of a batch are divided between two calls. */
const KEYS = { lone: 10, batch: 128 }

/** Requests counted. */
const REQUESTS = { lone: 128, batch: 512 }

/** How requests are sent: one at a time, or in calls of 64. */
export type Load = keyof typeof KEYS
export const LOADS: readonly Load[] = ['lone', 'batch']

/** The code under measurement. */
export interface Subject {
  /** Makes the nth request. */
  ask(key: string, n: number): Promise<unknown>
  /** Runs once per key, before anything is counted. */
  prepare?(key: string): Promise<unknown>
  /** Decisions per request. Default: 1. */
  readonly decisions?: number
}

/** The cost of decisions. */
export interface Cost {
  /** Thousand instructions per decision. */
  readonly thousands: number
  readonly decisionsPerCall: number
}

/** Counts the cost of a number of requests, after one request per key. Flushes the database first. */
export async function costOf(
  redis: CountingRedis,
  { ask: request, prepare, decisions = 1 }: Subject,
  load: Load,
): Promise<Cost> {
  const count = REQUESTS[load]
  const keys = Array.from({ length: KEYS[load] }, (_, i) => `user:${i}`)
  const atOnce = load === 'lone' ? 1 : keys.length
  const requests = async (first: number, end: number) => {
    for (let n = first; n < end; n += atOnce) {
      const batch = Array.from({ length: atOnce }, (_, i) => request(keys[(n + i) % keys.length]!, n + i))
      await Promise.all(batch)
    }
  }
  await ask(redis.port, 'FLUSHALL')
  if (prepare) await Promise.all(keys.map(prepare))
  await requests(0, keys.length)
  // Starts with collected garbage. Otherwise, the count depends on how far the collector of Lua is in its cycle.
  await ask(redis.port, 'EVAL', 'collectgarbage()', 0)
  const callsBefore = await scriptCalls(redis)
  const instructions = await redis.count(() => requests(keys.length, keys.length + count))
  const made = count * decisions
  const calls = (await scriptCalls(redis)) - callsBefore
  return { thousands: instructions / made / 1000, decisionsPerCall: made / calls }
}

async function scriptCalls({ port }: CountingRedis): Promise<number> {
  const stats = await askText(port, 'INFO', 'commandstats')
  return Number(/^cmdstat_evalsha:calls=(\d+)/m.exec(stats)?.[1] ?? 0)
}
