import { expect } from 'vitest'
import {
  type Decision,
  SlidegateError,
  type SlidegateErrorCode,
  StoreUnavailableError,
  WaitError,
} from '../../src/index.ts'
import { Hostility } from './hostile.ts'

const CODES: readonly SlidegateErrorCode[] = [
  ...(['invalid_limit', 'invalid_duration', 'invalid_precision', 'duplicate_limit', 'invalid_name'] as const),
  ...([
    'invalid_key',
    'invalid_cost',
    'invalid_refund',
    'invalid_reservation',
    'invalid_request_id',
  ] as const),
  ...(['reused_request_id', 'invalid_value', 'invalid_option', 'closed', 'sync_unsupported'] as const),
]

/** The maximum message length, whatever the arguments. */
export const MAX_MESSAGE = 700

/** Checks an error. It must be a short error of the library, or one that an argument threw. */
export function expectTyped(error: unknown): void {
  if (error instanceof Hostility || isOfEngine(error)) return
  if (
    !(error instanceof SlidegateError || error instanceof StoreUnavailableError || error instanceof WaitError)
  ) {
    throw new Error('an error of another type', { cause: error })
  }
  if (error instanceof SlidegateError) expect(CODES).toContain(error.code)
  expect(error.message).not.toBe('')
  expect(error.message.length).toBeLessThan(MAX_MESSAGE)
}

/** Whether the JavaScript engine threw the error. It does so for a revoked proxy or a class that was called. */
function isOfEngine(error: unknown): boolean {
  return (
    error instanceof TypeError &&
    /on a proxy that has been revoked|^Class constructor .* cannot be invoked/.test(error.message)
  )
}

/** Returns the result, or `undefined` if it throws a documented error. */
export function made<T>(make: () => T): T | undefined {
  try {
    return make()
  } catch (error) {
    expectTyped(error)
    return undefined
  }
}

/** Returns the resolved value, or `undefined` if it rejects with a documented error. */
export async function answered<T>(ask: () => T | PromiseLike<T>): Promise<T | undefined> {
  try {
    return await ask()
  } catch (error) {
    expectTyped(error)
    return undefined
  }
}

const NO_LIMIT = Number.POSITIVE_INFINITY

/** Checks that a decision makes sense. One `throw` is faster than an expectation for each number. */
export function expectSense(decision: Decision): void {
  const { allowed, cost, remaining, retryAfterMs, resetAfterMs, deniedBy, limits, atMs, blockedMs } = decision
  const isSense =
    isWhole(remaining) &&
    isWhole(retryAfterMs) &&
    isWhole(resetAfterMs) &&
    Number.isSafeInteger(cost) &&
    Number.isSafeInteger(atMs) &&
    (!allowed || (retryAfterMs === 0 && deniedBy.length === 0)) &&
    (allowed || retryAfterMs > 0) &&
    resetAfterMs !== NO_LIMIT &&
    limits.every(
      (limit) =>
        isWhole(limit.remaining) &&
        limit.remaining <= limit.limit &&
        isWhole(limit.retryAfterMs) &&
        isWhole(limit.resetAfterMs) &&
        limit.resetAfterMs !== NO_LIMIT &&
        (limit.retryAfterMs !== NO_LIMIT || (!limit.allowed && cost > limit.limit)),
    ) &&
    deniedBy.every(
      (name) =>
        limits.some((limit) => limit.name === name && !limit.allowed && !limit.shadow) ||
        (blockedMs !== undefined && /^([\w-]+\.)?(ban|block)$/.test(name)),
    )
  if (!isSense) throw new Error(`a decision that makes no sense: ${JSON.stringify(decision)}`)
}

function isWhole(number: number): boolean {
  return (Number.isSafeInteger(number) && number >= 0) || number === NO_LIMIT
}

const PROTOTYPES = [Object, Array, Function, String, Map, Promise].map(({ prototype }) => prototype as object)
const NAMES = PROTOTYPES.map((prototype) => Reflect.ownKeys(prototype).length)

/** Checks that no built-in prototype was changed. */
export function expectUnpolluted(): void {
  PROTOTYPES.forEach((prototype, i) => {
    if (Reflect.ownKeys(prototype).length !== NAMES[i]) throw new Error('a prototype was changed')
  })
}
