import type { Redis } from 'ioredis'

/** Returns a section of INFO: name -> value. */
async function section(redis: Redis, name: string): Promise<Map<string, string>> {
  const text = await redis.info(name)
  return new Map(
    text
      .split('\r\n')
      .filter((line) => line.includes(':'))
      .map((line) => [line.slice(0, line.indexOf(':')), line.slice(line.indexOf(':') + 1)]),
  )
}

export async function redisVersion(redis: Redis): Promise<string> {
  return (await section(redis, 'server')).get('redis_version') ?? 'unknown'
}

/** Returns the CPU time of the main thread of Redis: commands, scripts and socket I/O. */
export async function mainThreadSeconds(redis: Redis): Promise<number> {
  const cpu = await section(redis, 'cpu')
  const seconds = Number(cpu.get('used_cpu_user_main_thread')) + Number(cpu.get('used_cpu_sys_main_thread'))
  if (!(seconds > 0)) throw new Error('INFO cpu has no CPU time of the main thread. Use Redis 7.0 or later.')
  return seconds
}

/** Returns the calls or microseconds of each command that `use` causes, including commands within scripts. */
export async function commandsOf(
  redis: Redis,
  use: () => Promise<unknown>,
  unit: 'calls' | 'usec' = 'calls',
): Promise<Map<string, number>> {
  await redis.config('RESETSTAT')
  await use()
  const commands = new Map<string, number>()
  for (const [name, stats] of await section(redis, 'commandstats')) {
    const amount = new RegExp(`\\b${unit}=(\\d+)`).exec(stats)
    if (name !== 'cmdstat_config|resetstat') commands.set(name.slice('cmdstat_'.length), Number(amount![1]))
  }
  return commands
}

/** Calls of scripts and functions since the server started, and their time within Redis. */
export interface ScriptCalls {
  readonly calls: number
  readonly microseconds: number
}

export async function scriptCalls(redis: Redis): Promise<ScriptCalls> {
  const stats = await section(redis, 'commandstats')
  let calls = 0
  let microseconds = 0
  for (const name of ['evalsha', 'eval', 'fcall']) {
    const found = /^calls=(\d+),usec=(\d+)/.exec(stats.get(`cmdstat_${name}`) ?? '')
    if (found === null) continue
    calls += Number(found[1])
    microseconds += Number(found[2])
  }
  return { calls, microseconds }
}

/** Returns the script calls that `use` causes. */
export async function scriptCallsOf(redis: Redis, use: () => Promise<unknown>): Promise<ScriptCalls> {
  const before = await scriptCalls(redis)
  await use()
  const after = await scriptCalls(redis)
  return {
    calls: after.calls - before.calls,
    microseconds: after.microseconds - before.microseconds,
  }
}

/** Returns the microseconds that Redis spends in the one script that `call` runs. */
export async function scriptMicroseconds(redis: Redis, call: () => Promise<void>): Promise<number> {
  const { calls, microseconds } = await scriptCallsOf(redis, call)
  if (calls !== 1) throw new Error(`Measured ${calls} script calls, expected one`)
  return microseconds
}

/** Returns the memory of keys in Redis, including their names. */
export async function bytesOf(redis: Redis, keys: readonly string[]): Promise<number> {
  const weights = await Promise.all(keys.map((key) => redis.memory('USAGE', key, 'SAMPLES', 0)))
  return weights.reduce<number>((sum, bytes) => sum + (bytes ?? 0), 0)
}
