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

it('a mistake, an outage and a denial are three different things', async () => {
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

it("two copies of the package in one process know each other's errors", async () => {
  expect(built.SlidegateError).not.toBe(SlidegateError)
  const error = await errorOf(() => createLimiter({ limits }).consume(''))
  expect(error).toBeInstanceOf(built.SlidegateError)
  expect(error).not.toBeInstanceOf(built.StoreUnavailableError)
})

it('a limit of another copy of the package is refused as that, and a copy of a limit is not taken for one', async () => {
  const foreign = built.slidingWindow({ limit: 1, window: '1m' })
  for (const refused of [() => createLimiter({ limits: [foreign] }), () => declarationOf(foreign)]) {
    expect(await errorOf(refused)).toMatchObject({
      code: 'invalid_limit',
      message: expect.stringContaining('a limit of another copy of slidegate'),
      value: foreign,
    })
  }
  const copied = { ...limits[0]!, limit: 5 }
  expect(await errorOf(() => createLimiter({ limits: [copied] }))).toMatchObject({
    message: expect.stringContaining('limits holds an object; make limits with slidingWindow()'),
  })
})

it.each([undefined, null, 'no', {}, [], new Error('other'), () => {}])(
  'nothing else is one of them: %s',
  (other) => {
    expect(other).not.toBeInstanceOf(SlidegateError)
    expect(other).not.toBeInstanceOf(StoreUnavailableError)
  },
)

it('a message shows what was given, but never all of a flood', async () => {
  for (const flood of ['x'.repeat(10_000_000), Symbol('x'.repeat(10_000_000)), 10n ** 10_000n]) {
    const error = (await errorOf(() => createLimiter({ limits }).consume(flood as string))) as SlidegateError
    expect(error.message.length).toBeLessThan(200)
    expect(error.value).toBe(flood)
  }
})

it('a message says that a promise was given', async () => {
  const limiter = createLimiter({ limits })
  const error = await errorOf(() => limiter.consume(Promise.resolve('k') as never))
  expect(error).toMatchObject({ code: 'invalid_key', message: 'the key is a promise; it must be a string' })
})

it('a message says what it can of an object of which nothing can be said', async () => {
  const { proxy, revoke } = Proxy.revocable({}, {})
  revoke()
  const error = await errorOf(() => createLimiter({ limits }).consume(proxy as string))
  expect(error).toMatchObject({ code: 'invalid_key', message: 'the key is an object; it must be a string' })
})

it('what a store has failed with is the cause, and never a flood of what is no error', async () => {
  const causes = [new Error('ECONNREFUSED'), 'gone', undefined, null, 0, Symbol('s'), { code: 5 }, ['a']]
  for (const cause of causes) {
    const store = { failurePolicy, apply: (_: unknown, call: Call) => call.reject(cause), close() {} }
    const error = await errorOf(() => createLimiter({ limits, store, logger: false }).consume('k'))
    expect(error).toBeInstanceOf(StoreUnavailableError)
    expect(error).toMatchObject({ reason: 'error', message: expect.stringContaining('did not decide') })
    expect((error as Error).cause).toBe(cause)
  }
})

it('a store that is not asked any more says so, and why', async () => {
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
      'limiter "default": the store is not asked, since it has failed lately: the store did not decide: ECONNREFUSED',
  })
})
