import { describe, expect, it } from 'vitest'
import { createGuard, type GuardOptions, type Verdict } from '../../src/http/index.ts'
import {
  concurrency,
  createLimiter,
  distinct,
  type Limiter,
  memoryStore,
  type OnStoreError,
  SlidegateError,
  type Store,
  slidingWindow,
} from '../../src/index.ts'

type Options = GuardOptions<[request: string]>

const limits = [slidingWindow({ limit: 2, window: '1m', name: 'two' })]
const limiter = createLimiter({ name: 'shared', limits })

describe('options are refused at construction', () => {
  const store = { apply: async () => [], close: () => {} }
  it.each<[string, unknown, object]>([
    ['none at all', undefined, { value: undefined }],
    ['no object', 'draft-7', { value: 'draft-7' }],
    ['neither limits nor a limiter', { name: 'api' }, { message: /neither/ }],
    ['a limiter and limits', { limiter, limits }, { value: limits }],
    ['a limiter and a name', { limiter, name: 'api' }, { value: 'api' }],
    ['a limiter and a store', { limiter, store }, { value: store }],
    ['what is no limiter', { limiter: 'api' }, { value: 'api' }],
    ['a null limiter', { limiter: null }, { value: null }],
    ['no store', { limits, store: {} }, { value: {} }],
    ['an unknown generation of headers', { limits, headers: 'draft-8' }, { value: 'draft-8' }],
    ['headers that every object has', { limits, headers: 'toString' }, { value: 'toString' }],
    ['headers: true', { limits, headers: true }, { value: true }],
    ['headers in a list', { limits, headers: ['draft-11'] }, { value: ['draft-11'] }],
    ['headers that are no text', { limits, headers: Object.create(null) }, { value: {} }],
    ['a key that is no function', { limits, key: 'ip' }, { value: 'ip' }],
    ['a cost that is no function', { limits, cost: 2 }, { value: 2 }],
    ['a skip that is no function', { limits, skip: true }, { value: true }],
    [
      'a limit on what is held, which nobody would release',
      { limits: [concurrency({ limit: 1, ttl: '1s', name: 'held' })] },
      { value: 'held', message: /ask its limiter/ },
    ],
    [
      'a limiter with a limit on values, which nobody would bring',
      { limiter: createLimiter({ limits: [distinct({ limit: 1, window: '1s', name: 'values' })] }) },
      { value: 'values', message: /ask its limiter/ },
    ],
    ['a null skip', { limits, skip: null }, { value: null }],
    ['an onDenied that is no function', { limits, onDenied: {} }, { value: {} }],
  ])(
    '%s',
    (_, options, { message = /must be|give|belongs|use/, value }: { message?: RegExp; value?: unknown }) => {
      const error = thrownBy(() => createGuard(options as Options, () => 'address'))
      expect(error).toBeInstanceOf(SlidegateError)
      expect(error).toMatchObject({ code: 'invalid_option', message: expect.stringMatching(message) })
      if (value !== undefined) expect((error as SlidegateError).value).toEqual(value)
    },
  )

  it('limits as createLimiter does', () => {
    const guard = (options: Options) => () => createGuard(options, () => 'address')
    expect(guard({ limits: [] })).toThrow(expect.objectContaining({ code: 'invalid_limit' }))
    expect(guard({ limits: [undefined as never] })).toThrow(
      expect.objectContaining({ code: 'invalid_limit' }),
    )
    expect(guard({ limits: [...limits, ...limits] })).toThrow(
      expect.objectContaining({ code: 'duplicate_limit' }),
    )
    expect(guard({ limits, name: 'no spaces' })).toThrow(expect.objectContaining({ code: 'invalid_name' }))
  })
})

describe('a verdict', () => {
  it('allows with headers, then denies with a whole response', async () => {
    const guard = createGuard<[string]>({ limits }, (request) => request)
    expect(await guard('ann')).toEqual({
      headers: [
        { name: 'RateLimit-Policy', value: '"two";q=2;w=60', append: expect.any(Function) },
        { name: 'RateLimit', value: '"two";r=1;t=60', append: expect.any(Function) },
      ],
    })
    await guard('ann')
    const { headers, denial } = await guard('ann')
    expect(headers.map(({ name }) => name)).toEqual(['RateLimit-Policy', 'RateLimit', 'Retry-After'])
    expect(denial).toMatchObject({
      status: 429,
      headers: [{ name: 'Content-Type', value: 'application/problem+json' }],
      decision: { allowed: false, deniedBy: ['two'] },
    })
    expect(JSON.parse(denial!.body)).toMatchObject({ status: 429, 'violated-policies': ['two'] })
    expect((await guard('bob')).denial).toBeUndefined()
  })

  it('is there at once where nothing is to be waited for', () => {
    const guard = createGuard<[string]>({ limits, skip: () => false, cost: () => 2 }, (request) => request)
    expect(guard('ann')).toMatchObject({ headers: [{}, { value: '"two";r=0;t=60' }] })
    expect(guard('ann')).toMatchObject({ denial: { status: 429 } })
  })

  it.each<[string, Options]>([
    ['key', { limits, key: async (request) => request }],
    ['cost', { limits, cost: async () => 1 }],
    ['skip', { limits, skip: async () => false }],
    ['store', { limits, store: elsewhere() }],
    ['limiter that only promises', { limiter: promising() }],
  ])('is the same where something has to be waited for: the %s', async (_, options) => {
    const guard = createGuard<[string]>(options, (request) => request)
    for (const remaining of [1, 0]) {
      const verdict = guard('ann')
      expect(verdict).toBeInstanceOf(Promise)
      expect(await verdict).toMatchObject({ headers: [{}, { value: `"two";r=${remaining};t=60` }] })
    }
    expect(await guard('ann')).toMatchObject({ denial: { status: 429 } })
  })

  it('of a limiter that was closed is an error, not another way to ask', () => {
    const closed = createLimiter({ limits })
    closed.close()
    const guard = createGuard<[string]>({ limiter: closed }, (request) => request)
    expect(() => guard('ann')).toThrow(expect.objectContaining({ code: 'closed' }))
  })

  it('of a skipped request asks for nothing', async () => {
    const never = () => {
      throw new Error('asked')
    }
    const guard = createGuard<[string]>({ limits, skip: () => true, key: never, cost: never }, never)
    expect(await guard('ann')).toEqual({ headers: [] })
  })
})

describe('a verdict without the store', () => {
  const down: Store = { apply: (_, call) => call.reject(new Error('ECONNREFUSED')), close() {} }
  const guardOf = (onStoreError: OnStoreError, options: Partial<Options> = {}) =>
    createGuard<[string]>(
      {
        limiter: createLimiter({ limits, store: down, onStoreError, instances: 2, logger: false }),
        ...options,
      },
      (request) => request,
    )

  it('deny: 503, when to come again, and nothing of what is left, for nobody knows', async () => {
    for (const headers of ['draft-11', 'draft-7', 'legacy', false] as const) {
      const guard = guardOf('deny', { headers })
      for (let i = 0; i < 10; i++) {
        const verdict = await guard('ann')
        expect(verdict).toEqual({
          headers: [{ name: 'Retry-After', value: '1' }],
          denial: {
            decision: expect.objectContaining({ allowed: false, source: 'failClosed' }),
            status: 503,
            headers: [{ name: 'Content-Type', value: 'application/problem+json' }],
            body: expect.any(String),
          },
        })
        expect(JSON.parse(verdict.denial!.body)).toEqual({
          type: 'https://iana.org/assignments/http-problem-types#temporary-reduced-capacity',
          title: 'Request cannot be satisfied due to temporary server capacity constraints',
          status: 503,
        })
      }
    }
  })

  it('allow: it passes, and is told nothing', async () => {
    const guard = guardOf('allow')
    for (let i = 0; i < 10; i++) expect(await guard('ann')).toEqual({ headers: [] })
  })

  it('throw: the error of the framework', async () => {
    await expect(guardOf('throw')('ann')).rejects.toMatchObject({ code: 'store_unavailable' })
  })

  it('local: what is left of the share, and 429 when it is used up', async () => {
    const guard = guardOf('local')
    const allowed = await guard('ann')
    expect(allowed.headers.map(({ name, value }) => [name, value])).toEqual([
      ['RateLimit-Policy', '"two";q=2;w=60'],
      ['RateLimit', '"two";r=0;t=60'],
    ])
    const { headers, denial } = await guard('ann')
    expect(headers.map(({ value }) => value)).toEqual(['"two";q=2;w=60', '"two";r=0;t=60', '60'])
    expect(denial).toMatchObject({ status: 429, decision: { source: 'fallback', deniedBy: ['two'] } })
  })

  it.each(['deny', 'allow'] as const)('of a memory store that is full, at once: %s', (onFull) => {
    for (const options of [{ onFull }, { onStoreError: onFull }]) {
      const store = memoryStore({ maxKeys: 1, ...('onFull' in options && options) })
      const limiter = createLimiter({ limits, store, ...('onStoreError' in options && options) })
      const guard = createGuard<[string]>({ limiter }, (request) => request)
      for (let i = 0; i < 2; i++) guard('ann')
      const verdict = guard('bob') as Verdict
      if (onFull === 'allow') expect(verdict).toEqual({ headers: [] })
      else
        expect([verdict.headers.map(({ name }) => name), verdict.denial?.status]).toEqual([
          ['Retry-After'],
          503,
        ])
    }
  })
})

/** A store that answers later, as one in another process does. */
function elsewhere(): Store {
  const store = memoryStore()
  return {
    apply: (ops, call) => queueMicrotask(() => store.apply(ops, call)),
    close() {},
  }
}

/** What options take for a limiter although it has no other method. */
function promising(): Limiter {
  const limiter = createLimiter({ limits })
  return { consume: (key: string) => limiter.consume(key) } as Limiter
}

function thrownBy(act: () => unknown): unknown {
  try {
    act()
  } catch (error) {
    return error
  }
  return undefined
}
