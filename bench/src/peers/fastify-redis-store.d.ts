declare module '@fastify/rate-limit/store/RedisStore.js' {
  import type { Redis } from 'ioredis'

  type Answer = (error: Error | null, result: { current: number; ttl: number } | null) => void

  class RedisStore {
    constructor(continueExceeding: boolean, exponentialBackoff: boolean, redis: Redis, prefix?: string)
    incr(key: string, answer: Answer, timeWindowMs: number, max: number): void
  }

  export = RedisStore
}
