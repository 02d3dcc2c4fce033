import type { Redis } from 'ioredis'

/** A section of INFO by its names. */
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

/** CPU time that the main thread of Redis has taken: commands, scripts, and reading and writing sockets. */
export async function mainThreadSeconds(redis: Redis): Promise<number> {
  const cpu = await section(redis, 'cpu')
  const seconds = Number(cpu.get('used_cpu_user_main_thread')) + Number(cpu.get('used_cpu_sys_main_thread'))
  if (!(seconds > 0))
    throw new Error('INFO cpu does not tell the CPU time of the main thread: Redis 7.0 or later does')
  return seconds
}

/** What `use` makes Redis do, by command, those within scripts too: how often, or for how many microseconds. */
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

/** Calls of scripts and functions since the start, and the time within Redis that they took, without client and network. */
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

/** What `use` adds to them. */
export async function scriptCallsOf(redis: Redis, use: () => Promise<unknown>): Promise<ScriptCalls> {
  const before = await scriptCalls(redis)
  await use()
  const after = await scriptCalls(redis)
  return {
    calls: after.calls - before.calls,
    microseconds: after.microseconds - before.microseconds,
  }
}

/** Microseconds that Redis took to run one script, which `call` causes. */
export async function scriptMicroseconds(redis: Redis, call: () => Promise<void>): Promise<number> {
  const { calls, microseconds } = await scriptCallsOf(redis, call)
  if (calls !== 1) throw new Error(`${calls} script calls were made where one was to be measured`)
  return microseconds
}

/** What keys take of the memory of Redis, names and all. */
export async function bytesOf(redis: Redis, keys: readonly string[]): Promise<number> {
  const weights = await Promise.all(keys.map((key) => redis.memory('USAGE', key, 'SAMPLES', 0)))
  return weights.reduce<number>((sum, bytes) => sum + (bytes ?? 0), 0)
}
