import Bottleneck from 'bottleneck'
import { RateLimiterRes } from 'rate-limiter-flexible'

/** rate-limiter-flexible denies by rejecting with what is no Error; an Error is a failure. */
export async function isConsumed(consumed: Promise<unknown>): Promise<boolean> {
  try {
    await consumed
    return true
  } catch (denial) {
    if (denial instanceof RateLimiterRes) return false
    throw denial
  }
}

/** bottleneck queues what it cannot run now, unless it is told to shed that. */
export function sheddingJobs(limit: number, windowMs: number): Bottleneck.ConstructorOptions {
  return {
    reservoir: limit,
    reservoirRefreshAmount: limit,
    reservoirRefreshInterval: windowMs,
    highWater: 0,
    strategy: Bottleneck.strategy.OVERFLOW,
  }
}

/** A job that is shed is rejected with an error of the package's own. */
export async function isRun(limiter: Bottleneck): Promise<boolean> {
  try {
    return await limiter.schedule(async () => true)
  } catch (denial) {
    if (denial instanceof Bottleneck.BottleneckError) return false
    throw denial
  }
}
