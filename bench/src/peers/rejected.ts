import Bottleneck from 'bottleneck'
import { RateLimiterRes } from 'rate-limiter-flexible'

/** Returns whether a request was admitted. A denial rejects with a result, and a failure rejects with an Error. */
export async function isConsumed(consumed: Promise<unknown>): Promise<boolean> {
  try {
    await consumed
    return true
  } catch (denial) {
    if (denial instanceof RateLimiterRes) return false
    throw denial
  }
}

/** Configures bottleneck to drop jobs instead of queueing them. */
export function sheddingJobs(limit: number, windowMs: number): Bottleneck.ConstructorOptions {
  return {
    reservoir: limit,
    reservoirRefreshAmount: limit,
    reservoirRefreshInterval: windowMs,
    highWater: 0,
    strategy: Bottleneck.strategy.OVERFLOW,
  }
}

/** Returns whether a job ran. A dropped job rejects with a BottleneckError. */
export async function isRun(limiter: Bottleneck): Promise<boolean> {
  try {
    return await limiter.schedule(async () => true)
  } catch (denial) {
    if (denial instanceof Bottleneck.BottleneckError) return false
    throw denial
  }
}
