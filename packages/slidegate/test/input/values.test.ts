// tier: integration
import { beforeEach, describe, expect, it } from 'vitest'
import {
  type ConsumeOptions,
  concurrency,
  createLimiter,
  distinct,
  type Limit,
  type Limiter,
  slidingWindow,
} from '../../src/index.ts'
import { ManualClock } from '../../src/testing/index.ts'
import { storesOn } from '../support/stores.ts'
import { useRedis } from '../support/use-redis.ts'
import { expectRefusal } from './refusal.ts'

// A limiter of distinct values has one limit and one key, and each value costs one unit.

const { redis } = await useRedis()
beforeEach(() => redis.flushall())

const accounts = distinct({ limit: 3, window: '1h', name: 'accounts' })
const rate = slidingWindow({ limit: 10, window: '1h' })
const right =
  /limit "accounts" counts distinct values, so it must be the only limit of a limiter without.*create two limiters and call both/
const refusal = { code: 'invalid_limit', value: 'accounts', right } as const

describe('a limit of distinct values is rejected', () => {
  it.each([
    ['with another limit', [rate, accounts]],
    ['with another of its kind', [accounts, distinct({ limit: 9, window: '1d' })]],
    ['with a shadow limit', [accounts, slidingWindow({ limit: 1, window: '1s', shadow: true })]],
    ['with a concurrency limit', [concurrency({ limit: 1, ttl: '1m' }), accounts]],
  ])('%s', (_, limits) => expectRefusal(() => createLimiter({ limits }), refusal))

  it('in a dimension, even if it is the only one', async () => {
    const several = { user: [rate], ip: [accounts] }
    const inDimension = {
      ...refusal,
      value: 'ip.accounts',
      right: /limit "ip\.accounts" counts distinct values/,
    }
    await expectRefusal(() => createLimiter({ dimensions: several }), inDimension)
    await expectRefusal(() => createLimiter({ dimensions: { ip: [accounts] } }), inDimension)
  })

  it('when a function returns it with others', async () => {
    const limiter = createLimiter({ limits: (key) => (key === 'alone' ? [accounts] : [rate, accounts]) })
    expect((await limiter.consume('alone', { value: 'a' })).allowed).toBe(true)
    await expectRefusal(() => limiter.consume('k', { value: 'a' }), refusal)
    const keyed = createLimiter({ dimensions: { ip: () => [accounts] } })
    await expectRefusal(() => keyed.consume({ ip: 'k' }, { value: 'a' }), {
      ...refusal,
      value: 'ip.accounts',
      right: /distinct/,
    })
  })
})

describe.each(Object.entries(storesOn(redis)))('a limiter of distinct values on %s', (_, storeOf) => {
  const limiterOf = (limits: readonly Limit[]): Limiter =>
    createLimiter({ limits, store: storeOf(new ManualClock()), timeoutMs: 30_000 })

  it('rejects a cost other than 1', async () => {
    const limiter = limiterOf([accounts])
    const ask: ConsumeOptions = { value: 'a', cost: 2 }
    const asks = [
      () => limiter.consume('k', ask),
      () => limiter.consumeMany([{ key: 'k', ...ask }]),
      () => limiter.peek('k', ask),
      () => limiter.charge('k', 2, { value: 'a' }),
    ]
    const alone = /the number of units is 2; limit "accounts" counts each distinct value as one unit/
    for (const ask of asks) await expectRefusal(ask, { code: 'invalid_cost', value: 2, right: alone })
    expect((await limiter.consume('k', { value: 'a', cost: 1 })).remaining).toBe(2)
  })

  it('rejects a request without a value, or with an id', async () => {
    const limiter = limiterOf([accounts])
    const asks = [() => limiter.consume('k'), () => limiter.peek('k'), () => limiter.charge('k', 1)]
    for (const ask of asks)
      await expectRefusal(ask, { code: 'invalid_value', value: undefined, right: /the value is undefined/ })
    await expectRefusal(() => limiter.consume('k', { value: 'a', requestId: 'r' }), {
      ...{ code: 'invalid_request_id', value: 'r', right: /no limit in this limiter stores request ids/ },
    })
  })

  it('rejects waits, reservations and permits', async () => {
    const limiter = limiterOf([accounts])
    const waits = [() => limiter.wait('k'), () => limiter.schedule('k', () => {})]
    const noWait = /limit "accounts" counts distinct values, which wait\(\) doesn't support; use consume\(\)/
    for (const ask of waits)
      await expectRefusal(ask, { code: 'invalid_option', value: 'accounts', right: noWait })
    await expect(limiter.reserve('k', 1)).rejects.toMatchObject({ code: 'invalid_option' })
    await expect(limiter.acquire('k')).rejects.toMatchObject({ code: 'invalid_option' })
  })

  it('rejects a settlement of a reservation from before its limits changed', async () => {
    let limits = [rate]
    const store = storeOf(new ManualClock())
    const limiter = createLimiter({ limits: () => limits, store, timeoutMs: 30_000 })
    const { token } = await limiter.reserve('k', 2)
    limits = [accounts]
    await expectRefusal(() => limiter.settle(token, 5), {
      ...{ code: 'invalid_option', value: 'accounts', right: /which settle\(\) doesn't support/ },
    })
  })
})

it('waiting requests are rejected when their limit becomes one of distinct values', async () => {
  let limits: Limit[] = [slidingWindow({ limit: 1, window: '1h' })]
  const limiter = createLimiter({ limits: () => limits })
  await limiter.consume('k')
  const waits = [1, 2].map(() => limiter.wait('k', { maxWaitMs: 7_000_000 }))
  limits = [accounts]
  await limiter.reset('k')
  for (const wait of waits) await expect(wait).rejects.toMatchObject({ code: 'invalid_option' })
  expect(await limiter.list('k')).toEqual([{ limit: 'accounts', entries: [] }])
  limiter.close()
})
