import { expect } from 'vitest'
import { SlidegateError, type SlidegateErrorCode } from '../../src/index.ts'

/** Expects a `SlidegateError` with the invalid value, and a message about what is allowed. */
export async function expectRefusal(
  ask: () => unknown,
  expected: { code: SlidegateErrorCode; value: unknown; right: RegExp },
): Promise<void> {
  const error = await errorOf(ask)
  expect(error).toBeInstanceOf(SlidegateError)
  const { code, value, message } = error as SlidegateError
  expect(code).toBe(expected.code)
  expect(Object.is(value, expected.value), `its value is ${String(value)}`).toBe(true)
  expect(message).toMatch(expected.right)
  expect(message.length, 'the message is short').toBeLessThan(300)
}

/** Returns the error that `ask` throws or rejects with. `undefined` if it does neither. */
export async function errorOf(ask: () => unknown): Promise<unknown> {
  try {
    await ask()
    return undefined
  } catch (error) {
    return error
  }
}
