import type { Decision } from '../decision.ts'
import { SlidegateError, show } from '../errors.ts'
import type { AnyKey } from '../key.ts'
import type { Limiter } from '../limiter.ts'
import type { Answered, HandlerArguments } from './binding.ts'
import type { Ask } from './denied.ts'

/** Responses for which nothing is charged in the end. */
export type RefundIf<Args extends HandlerArguments> =
  | 'successful'
  | 'failed'
  | ((response: Answered, ...args: Args) => boolean | Promise<boolean>)

/** What is counted of a request once its response is over. */
export interface SettlingOptions<Args extends HandlerArguments> {
  readonly refundIf?: RefundIf<Args> | undefined
  readonly settle?: ((response: Answered, ...args: Args) => number | Promise<number>) | undefined
  readonly onSettleError?: ((error: unknown, ...args: Args) => unknown) | undefined
}

export type Settler<Key extends AnyKey, Args extends HandlerArguments> = (
  key: Key,
  ask: Ask | undefined,
  decision: Decision,
  args: Args,
) => (response: Answered) => void

/** A client that hangs up early must not go free by it: such a response is neither. */
const REFUNDED: Readonly<Record<string, (response: Answered) => boolean>> = {
  successful: ({ status, isComplete }) => isComplete && status < 400,
  failed: ({ status, isComplete }) => isComplete && status >= 400,
}

/** Nothing where what was charged is what was meant. */
export function settler<Key extends AnyKey, Args extends HandlerArguments>(
  limiter: Limiter<Key>,
  options: SettlingOptions<Args>,
): Settler<Key, Args> | undefined {
  const warn = warner()
  const { refundIf, settle, onSettleError = warn } = options
  if (refundIf === undefined && settle === undefined) return undefined
  const isRefunded = typeof refundIf === 'string' ? REFUNDED[refundIf] : refundIf

  async function settled(
    key: Key,
    ask: Ask | undefined,
    decision: Decision,
    response: Answered,
    args: Args,
  ): Promise<void> {
    if (isRefunded !== undefined && (await isRefunded(response, ...args)) === true) {
      await limiter.refund(key, decision)
      return
    }
    if (settle === undefined) return
    const units = checkedUnits(await settle(response, ...args))
    if (units > decision.cost) await limiter.charge(key, units - decision.cost, { request: ask?.request })
    else if (units < decision.cost) await limiter.refund(key, decision, decision.cost - units)
  }

  return (key, ask, decision, args) => {
    let isOver = false
    return (response) => {
      if (isOver) return
      isOver = true
      settled(key, ask, decision, response, args)
        .catch((error: unknown) => onSettleError(error, ...args))
        // There is nobody left to be told, and no reason to end the process.
        .catch(warn)
    }
  }
}

function checkedUnits(units: unknown): number {
  if (Number.isSafeInteger(units) && (units as number) >= 0) return units as number
  throw new SlidegateError(
    'invalid_cost',
    `the settled cost is ${show(units)}; it must be an integer from 0`,
    units,
  )
}

/** Once: while a store is down it would be said of every response. */
function warner(): (error: unknown) => void {
  let hasWarned = false
  return (error) => {
    if (hasWarned) return
    hasWarned = true
    const message = error instanceof Error ? error.message : show(error)
    console.warn(`slidegate: a response could not be settled: ${message}`)
  }
}
