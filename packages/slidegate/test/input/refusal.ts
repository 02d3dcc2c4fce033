import { expect } from 'vitest'
import { SlidegateError, type SlidegateErrorCode } from '../../src/index.ts'

/** Whether thrown or rejected with: a `SlidegateError` that names the offending value and says what would be right. */
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
  expect(message.length, 'a message is no flood').toBeLessThan(300)
}

/** What it throws or rejects with; `undefined` where it does neither. */
export async function errorOf(ask: () => unknown): Promise<unknown> {
  try {
    await ask()
    return undefined
  } catch (error) {
    return error
  }
}
