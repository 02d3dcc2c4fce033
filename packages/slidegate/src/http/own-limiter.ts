import { createLimiter } from '../limiter/create-limiter.ts'
import type { Limiter } from '../limiter.ts'
import type { Limit } from '../limits/limit.ts'
import type { HandlerArguments } from './binding.ts'
import type { GuardOptions } from './options.ts'

/** Returns the limits of a key. */
type LimitsFunction = (key: string, request: unknown) => readonly Limit[] | Promise<readonly Limit[]>

const functions = new WeakMap<object, LimitsFunction>()

/**
 * Makes a limiter from the option `limits`.
 *
 * A function may be async here, unlike in `createLimiter`: the guard calls it, and passes the limits it returns as `request`.
 */
export function limiterFrom<Args extends HandlerArguments>({
  limits = [],
  ...rest
}: Pick<GuardOptions<Args>, 'name' | 'limits' | 'store'>): Limiter {
  if (typeof limits !== 'function') return createLimiter({ ...rest, limits })
  const limiter = createLimiter({ ...rest, limits: (_key, returned) => returned as readonly Limit[] })
  functions.set(limiter, limits)
  return limiter
}

/** The function that was given as the `limits` of the limiter. */
export function limitsFunctionOf(limiter: object): LimitsFunction | undefined {
  return functions.get(limiter)
}
