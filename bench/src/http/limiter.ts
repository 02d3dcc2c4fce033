import type { Redis } from 'ioredis'
import { createLimiter, type Limiter, slidingWindow } from 'slidegate'
import { redisStore } from 'slidegate/redis'
import type { Policy } from '../peers/peer.ts'
import { PATIENCE_MS } from '../sides.ts'

export function slidegateLimiter(redis: Redis | undefined, { limit, windowMs }: Policy): Limiter {
  return createLimiter({
    limits: [slidingWindow({ limit, window: windowMs })],
    store: redis && redisStore(redis),
    timeoutMs: PATIENCE_MS,
  })
}
