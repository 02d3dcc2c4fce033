// Implements `refundIf` and `settle`: refunds the charge or settles the difference after a response.
import type { Decision } from '../decision.ts'
import { SlidegateError, show } from '../errors.ts'
import type { AnyKey } from '../key.ts'
import type { Limiter } from '../limiter.ts'
import type { LimiterCallOptions } from './denied.ts'
import type { FinishedResponse, GuardOptions, HandlerArguments } from './options.ts'

export type Settler<Key extends AnyKey, Args extends HandlerArguments> = (
  key: Key,
  callOptions: LimiterCallOptions | undefined,
  decision: Decision,
  args: Args,
) => (response: FinishedResponse) => void

/** A response that was cut off is neither successful nor failed. Otherwise, clients could get refunds by disconnecting. */
const REFUNDED: Readonly<Record<string, (response: FinishedResponse) => boolean>> = {
  successful: ({ status, isComplete }) => isComplete && status < 400,
  failed: ({ status, isComplete }) => isComplete && status >= 400,
}

/** Returns a function that creates a request's `onFinished`, or `undefined` if neither option is set. */
export function settler<Key extends AnyKey, Args extends HandlerArguments>(
  limiter: Limiter<Key>,
  options: Pick<GuardOptions<Args>, 'refundIf' | 'settle' | 'onSettleError'>,
): Settler<Key, Args> | undefined {
  const warn = warner()
  const { refundIf, settle, onSettleError = warn } = options
  if (refundIf === undefined && settle === undefined) return undefined
  const isRefunded = typeof refundIf === 'string' ? REFUNDED[refundIf] : refundIf

  async function settled(
    key: Key,
    callOptions: LimiterCallOptions | undefined,
    decision: Decision,
    response: FinishedResponse,
    args: Args,
  ): Promise<void> {
    if (isRefunded !== undefined && (await isRefunded(response, ...args)) === true) {
      await limiter.refund(key, decision)
      return
    }
    if (settle === undefined) return
    const units = checkedUnits(await settle(response, ...args))
    if (units > decision.cost)
      await limiter.charge(key, units - decision.cost, { request: callOptions?.request })
    else if (units < decision.cost) await limiter.refund(key, decision, decision.cost - units)
  }

  return (key, callOptions, decision, args) => {
    let isOver = false
    return (response) => {
      if (isOver) return
      isOver = true
      settled(key, callOptions, decision, response, args)
        .catch((error: unknown) => onSettleError(error, ...args))
        // An error in onSettleError must not crash the process.
        .catch(warn)
    }
  }
}

function checkedUnits(units: unknown): number {
  if (Number.isSafeInteger(units) && (units as number) >= 0) return units as number
  throw new SlidegateError(
    'invalid_cost',
    `settle returned ${show(units)}; it must return an integer of at least 0`,
    units,
  )
}

/** Warns only once, because every response fails to settle while the store is down. */
function warner(): (error: unknown) => void {
  let hasWarned = false
  return (error) => {
    if (hasWarned) return
    hasWarned = true
    const message = error instanceof Error ? error.message : show(error)
    console.warn(`slidegate: couldn't refund or charge after a response: ${message}`)
  }
}
