import * as built from 'slidegate'
import { expect, it } from 'vitest'
import {
  type Call,
  createLimiter,
  declarationOf,
  failurePolicy,
  memoryStore,
  SlidegateError,
  StoreUnavailableError,
  slidingWindow,
} from '../../src/index.ts'
import { errorOf } from './refusal.ts'

const limits = [slidingWindow({ limit: 1, window: '1m' })]

it('invalid input, an outage and a denial are reported differently', async () => {
  const limiter = createLimiter({ limits, store: memoryStore({ maxKeys: 1 }) })
  const mistake = await errorOf(() => limiter.consume(''))
  expect(mistake).toBeInstanceOf(Error)
  expect(mistake).toBeInstanceOf(SlidegateError)
  expect(mistake).not.toBeInstanceOf(StoreUnavailableError)
  expect(mistake).toMatchObject({ name: 'SlidegateError', code: 'invalid_key', value: '' })

  await limiter.consume('a')
  const outage = await errorOf(() => limiter.consume('b'))
  expect(outage).toBeInstanceOf(Error)
  expect(outage).toBeInstanceOf(StoreUnavailableError)
  expect(outage).not.toBeInstanceOf(SlidegateError)
  expect(outage).toMatchObject({ name: 'StoreUnavailableError', code: 'store_unavailable', reason: 'full' })

  expect((await limiter.consume('a')).allowed).toBe(false)
})

it("two copies of the package in one process recognize each other's errors", async () => {
  expect(built.SlidegateError).not.toBe(SlidegateError)
  const error = await errorOf(() => createLimiter({ limits }).consume(''))
  expect(error).toBeInstanceOf(built.SlidegateError)
  expect(error).not.toBeInstanceOf(built.StoreUnavailableError)
})

it('limits from another copy of the package and copies of limits are rejected', async () => {
  const foreign = built.slidingWindow({ limit: 1, window: '1m' })
  for (const refused of [() => createLimiter({ limits: [foreign] }), () => declarationOf(foreign)]) {
    expect(await errorOf(refused)).toMatchObject({
      code: 'invalid_limit',
      message: expect.stringContaining('a limit from another copy of slidegate'),
      value: foreign,
    })
  }
  const copied = { ...limits[0]!, limit: 5 }
  expect(await errorOf(() => createLimiter({ limits: [copied] }))).toMatchObject({
    message: expect.stringContaining('limits contains an object; create limits with slidingWindow()'),
  })
})

it.each([undefined, null, 'no', {}, [], new Error('other'), () => {}])(
  'no other value is an instance of an error class: %s',
  (other) => {
    expect(other).not.toBeInstanceOf(SlidegateError)
    expect(other).not.toBeInstanceOf(StoreUnavailableError)
  },
)

it('a message shows the invalid value, shortened', async () => {
  for (const flood of ['x'.repeat(10_000_000), Symbol('x'.repeat(10_000_000)), 10n ** 10_000n]) {
    const error = (await errorOf(() => createLimiter({ limits }).consume(flood as string))) as SlidegateError
    expect(error.message.length).toBeLessThan(200)
    expect(error.value).toBe(flood)
  }
})

it('a message names a promise', async () => {
  const limiter = createLimiter({ limits })
  const error = await errorOf(() => limiter.consume(Promise.resolve('k') as never))
  expect(error).toMatchObject({ code: 'invalid_key', message: 'the key is a promise; it must be a string' })
})

it("a message names an object that can't be inspected", async () => {
  const { proxy, revoke } = Proxy.revocable({}, {})
  revoke()
  const error = await errorOf(() => createLimiter({ limits }).consume(proxy as string))
  expect(error).toMatchObject({ code: 'invalid_key', message: 'the key is an object; it must be a string' })
})

it("a store's error is the cause, and other values are shortened", async () => {
  const causes = [new Error('ECONNREFUSED'), 'gone', undefined, null, 0, Symbol('s'), { code: 5 }, ['a']]
  for (const cause of causes) {
    const store = { failurePolicy, apply: (_: unknown, call: Call) => call.reject(cause), close() {} }
    const error = await errorOf(() => createLimiter({ limits, store, logger: false }).consume('k'))
    expect(error).toBeInstanceOf(StoreUnavailableError)
    expect(error).toMatchObject({ reason: 'error', message: expect.stringContaining('the store failed') })
    expect((error as Error).cause).toBe(cause)
  }
})

it('the error of an open circuit breaker contains the last error of the store', async () => {
  const store = {
    failurePolicy,
    apply: (_: unknown, call: Call) => call.reject(new Error('ECONNREFUSED')),
    close() {},
  }
  const limiter = createLimiter({ limits, store, logger: false, breaker: { minRequests: 1 } })
  expect(await errorOf(() => limiter.consume('k'))).toMatchObject({ reason: 'error' })
  expect(await errorOf(() => limiter.consume('k'))).toMatchObject({
    ...{ name: 'StoreUnavailableError', code: 'store_unavailable', reason: 'down' },
    message:
      'limiter "default": the circuit breaker is open; the last error was: the store failed: ECONNREFUSED',
  })
})
