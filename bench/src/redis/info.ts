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

/** Microseconds that Redis took to run one script, which `call` causes; without what the client and the network take. */
export async function scriptMicroseconds(redis: Redis, call: () => Promise<void>): Promise<number> {
  await redis.config('RESETSTAT')
  await call()
  const stats = await section(redis, 'commandstats')
  let calls = 0
  let microseconds = 0
  for (const name of ['evalsha', 'eval', 'fcall']) {
    const found = /^calls=(\d+),usec=(\d+)/.exec(stats.get(`cmdstat_${name}`) ?? '')
    if (found === null) continue
    calls += Number(found[1])
    microseconds += Number(found[2])
  }
  if (calls !== 1) throw new Error(`${calls} script calls were made where one was to be measured`)
  return microseconds
}
