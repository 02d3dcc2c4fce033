import { ask } from '../../support/ask.ts'
import { type RedisSentinel, startSentinel } from '../../support/redis-sentinel.ts'
import type { RedisServer } from '../../support/redis-server.ts'
import { until } from '../../support/until.ts'
import type { Fault, Scene } from './fault.ts'

let shared: Promise<RedisSentinel> | undefined

/** Returns one setup for all faults, because it takes a long time to start. */
function sentinel(): Promise<RedisSentinel> {
  shared ??= startSentinel()
  return shared
}

export async function stopSentinel(): Promise<void> {
  await (await shared)?.stop()
  shared = undefined
}

type Server = Omit<RedisServer, 'stop'>

function onSentinel(strike: (redis: RedisSentinel, master: Server) => Promise<unknown>) {
  return async (): Promise<Scene> => {
    const redis = await sentinel()
    await redis.settled()
    const master = await redis.master()
    await ask(master.port, 'FLUSHALL')
    return {
      target: { port: redis.sentinels[0]!, masterName: redis.masterName },
      inject: async () => {
        await strike(redis, master)
      },
      async heal() {
        await until('exactly one master, and a new one', async () => {
          const next = await redis.master()
          return (
            next.port !== master.port &&
            (await roleOf(next)) === 'master' &&
            (await roleOf(master)) !== 'master'
          )
        })
      },
      async end() {
        const fallen = redis.servers.filter(({ isAwake }) => !isAwake)
        await Promise.all(fallen.map((server) => server.start()))
        await redis.settled()
      },
    }
  }
}

async function roleOf({ isAwake, port }: Server): Promise<string | undefined> {
  return isAwake ? ((await ask(port, 'ROLE')) as string[])[0] : undefined
}

export const SENTINEL_FAULTS: readonly Fault[] = [
  {
    name: 'sentinel-kill',
    title: 'primary killed, a replica takes over',
    on: 'sentinel',
    isFelt: 'surely',
    keepsData: false,
    lastsMs: 100,
    setUp: onSentinel((_, master) => master.kill()),
  },
  {
    name: 'sentinel-failover',
    title: '`SENTINEL FAILOVER`',
    on: 'sentinel',
    isFelt: 'perhaps',
    keepsData: false,
    lastsMs: 0,
    setUp: onSentinel(({ sentinels, masterName }) =>
      until('a failover begins', async () => {
        await ask(sentinels[0]!, 'SENTINEL', 'FAILOVER', masterName)
        return true
      }),
    ),
  },
]
