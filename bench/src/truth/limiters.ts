import type { Redis } from 'ioredis'
import { createLimiter, memoryStore, type Store, slidingWindow } from 'slidegate'
import { redisStore } from 'slidegate/redis'
import { MEMORY_PEERS } from '../peers/memory.ts'
import type { PeerLimiter, Policy, RedisPeer } from '../peers/peer.ts'
import { REDIS_PEERS } from '../peers/redis.ts'
import { FIELD_SCRIPTS } from '../redis/field.ts'
import { PATIENCE_MS } from '../sides.ts'
import type { Seen } from './judge.ts'

/** A limiter that is asked now, or at a time that is handed in. */
export interface Asked {
  readonly name: string
  readonly isOurs: boolean
  /** Whether it can only be asked one thing after the other: its answers change while others are made. */
  readonly isOneByOne?: boolean
  ask(key: string, atMs: number): Promise<Seen>
  close?(): unknown
}

/** Milliseconds of a clock that all processes of a machine share. */
export function machineMs(): number {
  return Number(process.hrtime.bigint()) / 1e6
}

/** Those that take the time as it is handed in. */
export async function askedWithTime(redis: Redis, policy: Policy): Promise<Asked[]> {
  let nowMs = 0
  const clock = () => nowMs
  const ours = (name: string, store: Store): Asked =>
    slidegate(name, store, policy, (atMs) => {
      nowMs = atMs
    })
  const scripts = await Promise.all(
    FIELD_SCRIPTS.map(async (script): Promise<Asked> => {
      const limiter = await script.open(redis, policy)
      return {
        name: `script: ${script.name}`,
        isOurs: false,
        async ask(key, atMs) {
          const [admitted] = await limiter.consume(key, atMs)
          return { isAdmitted: admitted === 1, fromMs: atMs, untilMs: atMs }
        },
      }
    }),
  )
  return [
    ours('slidegate on Redis', redisStore(redis, { clock })),
    ours('slidegate in memory', memoryStore({ clock })),
    ...scripts,
  ]
}

/** The packages of others, by the real clock. */
export async function askedInMemoryAndRedis(redis: Redis, policy: Policy): Promise<Asked[]> {
  const inMemory = MEMORY_PEERS.map((peer) => ({
    ...asked(`${peer.name} (memory)`, peer.open(policy)),
    // Two of the stores answer with the very object in which they count.
    isOneByOne: true,
  }))
  const inRedis = await Promise.all(
    redisPeers(policy).map(async (peer) => asked(`${peer.name} (Redis)`, await peer.open(redis, policy))),
  )
  return [...inMemory, ...inRedis]
}

/** All that keep their state in Redis, by the real clock. `writer` tells this process from others. */
export async function askedOnRedis(redis: Redis, policy: Policy, writer: string): Promise<Asked[]> {
  const scripts = FIELD_SCRIPTS.map(async (script) =>
    asked(`script: ${script.name}`, await script.open(redis, policy, writer)),
  )
  const peers = redisPeers(policy).map(async (peer) => asked(peer.name, await peer.open(redis, policy)))
  return [
    slidegate('slidegate', redisStore(redis), policy, () => {}),
    ...(await Promise.all(scripts)),
    ...(await Promise.all(peers)),
  ]
}

function redisPeers({ windowMs }: Policy): RedisPeer[] {
  return REDIS_PEERS.filter(({ leastWindowMs = 0 }) => leastWindowMs <= windowMs)
}

/** The decision tells its time, that of the store. */
function slidegate(name: string, store: Store, policy: Policy, setTime: (atMs: number) => void): Asked {
  const limits = [slidingWindow({ limit: policy.limit, window: policy.windowMs })]
  const limiter = createLimiter({ name: 'truth', limits, store, timeoutMs: PATIENCE_MS })
  return {
    name,
    isOurs: true,
    async ask(key, time) {
      setTime(time)
      const { allowed, atMs } = await limiter.consume(key)
      return { isAdmitted: allowed, fromMs: atMs, untilMs: atMs }
    },
    close: () => limiter.close(),
  }
}

function asked(name: string, limiter: PeerLimiter): Asked {
  return {
    name,
    isOurs: false,
    async ask(key) {
      const fromMs = machineMs()
      const isAdmitted = await limiter.decide(key)
      return { isAdmitted, fromMs, untilMs: machineMs() }
    },
    close: () => limiter.close?.(),
  }
}
