import type { Redis } from 'ioredis'
import { createLimiter, memoryStore, type Store, slidingWindow } from 'slidegate'
import { redisStore } from 'slidegate/redis'
import { MEMORY_PEERS } from '../peers/memory.ts'
import type { PeerLimiter, Policy, RedisPeer } from '../peers/peer.ts'
import { REDIS_PEERS } from '../peers/redis.ts'
import { COMMON_SCRIPTS } from '../redis/scripts.ts'
import { PATIENCE_MS } from '../sides.ts'
import type { Seen } from './judge.ts'

/** A limiter under test. It uses the real clock, or the time that is passed with each request. */
export interface Subject {
  readonly name: string
  readonly isOurs: boolean
  /** Whether requests must be sequential, because later requests change earlier answers. */
  readonly isOneByOne?: boolean
  ask(key: string, atMs: number): Promise<Seen>
  close?(): unknown
}

/** Milliseconds on a clock that all processes share. */
export function machineMs(): number {
  return Number(process.hrtime.bigint()) / 1e6
}

/** Creates limiters that accept a time. */
export async function subjectsWithTime(redis: Redis, policy: Policy): Promise<Subject[]> {
  let nowMs = 0
  const clock = () => nowMs
  const ours = (name: string, store: Store): Subject =>
    slidegate(name, store, policy, (atMs) => {
      nowMs = atMs
    })
  const scripts = await Promise.all(
    COMMON_SCRIPTS.map(async (script): Promise<Subject> => {
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

/** Creates limiters of other packages, on the real clock. */
export async function packageSubjects(redis: Redis, policy: Policy): Promise<Subject[]> {
  const inMemory = MEMORY_PEERS.map((peer) => ({
    ...subjectOf(`${peer.name} (memory)`, peer.open(policy)),
    // Two of the stores return their internal counter object, which later requests change.
    isOneByOne: true,
  }))
  const inRedis = await Promise.all(
    redisPeers(policy).map(async (peer) => subjectOf(`${peer.name} (Redis)`, await peer.open(redis, policy))),
  )
  return [...inMemory, ...inRedis]
}

/** Creates all limiters with state in Redis, on the real clock. `writer` is unique per process. */
export async function redisSubjects(redis: Redis, policy: Policy, writer: string): Promise<Subject[]> {
  const scripts = COMMON_SCRIPTS.map(async (script) =>
    subjectOf(`script: ${script.name}`, await script.open(redis, policy, writer)),
  )
  const peers = redisPeers(policy).map(async (peer) => subjectOf(peer.name, await peer.open(redis, policy)))
  return [
    slidegate('slidegate', redisStore(redis), policy, () => {}),
    ...(await Promise.all(scripts)),
    ...(await Promise.all(peers)),
  ]
}

function redisPeers({ windowMs }: Policy): RedisPeer[] {
  return REDIS_PEERS.filter(({ leastWindowMs = 0 }) => leastWindowMs <= windowMs)
}

/** Wraps slidegate. Uses the timestamp of the decision, which is the store's time. */
function slidegate(name: string, store: Store, policy: Policy, setTime: (atMs: number) => void): Subject {
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

function subjectOf(name: string, limiter: PeerLimiter): Subject {
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
