import { describe, expect, it, onTestFinished, vi } from 'vitest'
import { type Binding, createGuard, denialOf, type Verdict } from '../../src/http/index.ts'
import {
  concurrency,
  createLimiter,
  distinct,
  failurePolicy,
  type Limiter,
  memoryStore,
  SlidegateError,
  type Store,
  slidingWindow,
} from '../../src/index.ts'
import { fieldsOf, type PlainOptions as Options, plainGuard } from './plain.ts'

const limits = [slidingWindow({ limit: 2, window: '1m', name: 'two' })]
/** In which no time passes. */
const newStore = (): Store => memoryStore({ clock: () => 1_700_000_000_000 })
const limiter = createLimiter({ name: 'shared', limits })

type PlainDenied = NonNullable<Options['denied']>

interface Refusal {
  readonly message?: RegExp
  readonly value?: unknown
  readonly binding?: Partial<Binding<[string]>>
}

describe('options are refused at construction', () => {
  const store = { failurePolicy, apply: async () => [], close: () => {} }
  it.each<[string, unknown, Refusal]>([
    ['none at all', undefined, { value: undefined }],
    ['no object', 'draft-7', { value: 'draft-7' }],
    ['neither limits nor a limiter', { name: 'api' }, { message: /neither/ }],
    ['a limiter and limits', { limiter, limits }, { value: limits }],
    ['a limiter and a name', { limiter, name: 'api' }, { value: 'api' }],
    ['a limiter and a store', { limiter, store }, { value: store }],
    ['what is no limiter', { limiter: 'api' }, { value: 'api' }],
    ['a null limiter', { limiter: null }, { value: null }],
    ['no store', { limits, store: {} }, { value: {} }],
    ['an unknown format of headers', { limits, headers: 'draft-8' }, { value: 'draft-8' }],
    ['headers that every object has', { limits, headers: 'toString' }, { value: 'toString' }],
    ['headers: true', { limits, headers: true }, { value: true }],
    ['two drafts at once', { limits, headers: ['draft-11', 'draft-7'] }, { value: ['draft-11', 'draft-7'] }],
    ['a format twice', { limits, headers: ['legacy', 'legacy'] }, { value: ['legacy', 'legacy'] }],
    ['formats of which one is unknown', { limits, headers: ['legacy', null] }, { value: ['legacy', null] }],
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
    ['an onAllowed that is no function', { limits, onAllowed: 1 }, { value: 1 }],
    ['a settle that is no function', { limits, settle: 5 }, { value: 5 }],
    ['an onSettleError that is no function', { limits, onSettleError: true }, { value: true }],
    ['a refundIf that is no word of ours', { limits, refundIf: 'success' }, { value: 'success' }],
    ['a refundIf that is true', { limits, refundIf: true }, { value: true }],
    ['a disclose that is no boolean', { limits, disclose: 'no' }, { value: 'no' }],
    ['a list that is none', { limits, allow: '10.0.0.0/8' }, { value: '10.0.0.0/8' }],
    [
      'an address on a list that is none',
      { limits, deny: ['10.0.0.0/8', 'localhost'] },
      { value: 'localhost' },
    ],
    ['a network that is an address within one', { limits, allow: ['10.0.0.1/8'] }, { value: '10.0.0.1/8' }],
    ['a number on a list', { limits, deny: [7] }, { value: 7 }],
    [
      'addresses that anybody may tell',
      { limits, address: { trust: ['0.0.0.0/0'] } },
      { value: '0.0.0.0/0' },
    ],
    ['addresses without trust', { limits, address: {} }, { value: undefined }],
    ['an unknown policy', { limits, denied: 'wait' }, { value: 'wait' }],
    ['a policy that is null', { limits, denied: null }, { value: null }],
    [
      'two policies in one',
      { limits, denied: { delay: '1s', queue: 5 } },
      { value: { delay: '1s', queue: 5 } },
    ],
    [
      'a delay with what is of a queue',
      { limits, denied: { delay: '1s', maxWait: '2s' } },
      { value: 'maxWait', message: /no option of denied: \{ delay \}; there are delay$/ },
    ],
    [
      'a queue with a misspelt wait',
      { limits, denied: { queue: 1, maxwait: '1s' } },
      { value: 'maxwait', message: /no option of denied: \{ queue \}; there are queue, maxWait$/ },
    ],
    [
      'an address with a misspelt header',
      { limits, address: { trust: 1, hedder: 'forwarded' } },
      { value: 'hedder', message: /no option of address; there are trust, header, ipv6Prefix$/ },
    ],
    ['a delay of nothing', { limits, denied: { delay: 0 } }, { value: 0 }],
    ['a delay that is no duration', { limits, denied: { delay: 'long' } }, { value: 'long' }],
    ['a delay beyond all timers', { limits, denied: { delay: '30d' } }, { value: '30d' }],
    ['a queue of nobody', { limits, denied: { queue: 0 } }, { value: 0 }],
    ['a queue of half a request', { limits, denied: { queue: 1.5 } }, { value: 1.5 }],
    ['a queue beyond its bound', { limits, denied: { queue: 2 ** 21 } }, { value: 2 ** 21 }],
    ['a queue that waits for ever', { limits, denied: { queue: 1, maxWait: Infinity } }, { value: Infinity }],
    [
      'a delay by a limiter that cannot wait',
      { limiter: promising(), denied: { delay: 5 } },
      { value: { delay: 5 }, message: /cannot wait/ },
    ],
    [
      'a refund by a limiter that cannot',
      { limiter: promising(), refundIf: 'failed' },
      { message: /need a limiter/ },
    ],
    [
      'drop where connections cannot be closed',
      { limits, denied: 'drop' },
      { value: 'drop', message: /cannot be closed/, binding: { canDrop: false } },
    ],
  ])('%s', (_, options, { message = /must be|give|belongs|use/, value, binding }: Refusal) => {
    const error = thrownBy(() => plainGuard(options as Options, binding))
    expect(error).toBeInstanceOf(SlidegateError)
    expect(error).toMatchObject({ code: 'invalid_option', message: expect.stringMatching(message) })
    if (value !== undefined) expect((error as SlidegateError).value).toEqual(value)
  })

  it('a limiter in place of them, which has limits, and a name', () => {
    expect(() => createGuard(limiter as never, {} as never)).toThrow(
      expect.objectContaining({ code: 'invalid_option', message: expect.stringMatching(/\{ limiter \}/) }),
    )
  })

  it('limits as createLimiter does', () => {
    const guard = (options: Options) => () => plainGuard(options)
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

describe('a function that returns limits', () => {
  const plans = {
    free: [slidingWindow({ limit: 1, window: '1m', name: 'free' })],
    pro: [slidingWindow({ limit: 3, window: '1m', name: 'pro' })],
  }
  const planOf = (key: string) => (key.startsWith('pro') ? plans.pro : plans.free)

  it.each<[string, Options['limits']]>([
    ['at once', planOf],
    ['as a promise', async (key) => planOf(key)],
  ])('each key has the limits that the function returns: %s', async (_, limits) => {
    for (const more of [{}, { cost: async () => 1 }, { denied: { delay: 1 } }]) {
      const guard = plainGuard({ limits, store: newStore(), ...more })
      const statuses: unknown[] = []
      for (const who of ['ann', 'ann', 'pro-bob', 'pro-bob', 'pro-bob', 'pro-bob']) {
        const { denial } = await guard(who)
        statuses.push(denial?.action === 'answer' ? denial.status : 200)
      }
      expect(statuses).toEqual([200, 429, 200, 200, 200, 429])
    }
  })

  it('the function gets the key and the request, once for each request, even if it waits', async () => {
    const asked: unknown[] = []
    const guard = plainGuard({
      key: (request) => `key of ${request}`,
      limits: async (...given) => {
        asked.push(given)
        return plans.free
      },
      denied: { delay: 1 },
    })
    for (const who of ['ann', 'ann']) await guard(who)
    expect(asked).toEqual([
      ['key of ann', 'ann'],
      ['key of ann', 'ann'],
    ])
  })

  it('an invalid key never reaches the function', async () => {
    const limits = vi.fn(async () => plans.free)
    for (const key of ['', undefined, 7]) {
      const guard = plainGuard({ limits, key: () => key as string })
      await expect(async () => guard('ann')).rejects.toMatchObject({ code: 'invalid_key' })
    }
    expect(limits).not.toHaveBeenCalled()
  })

  it('a function that fails, or returns no limits, fails the request', async () => {
    const failure = new Error('no plan')
    const failing = plainGuard({ limits: () => Promise.reject(failure) })
    await expect(async () => failing('ann')).rejects.toBe(failure)
    const without = plainGuard({ limits: async () => undefined as never })
    await expect(async () => without('ann')).rejects.toMatchObject({
      code: 'invalid_limit',
      message: expect.stringContaining('limits is undefined'),
    })
  })

  it.each<[string, Options['limits']]>([
    ['at once', (_key, request) => planOf(request)],
    ['as a promise', async (_key, request) => planOf(request)],
  ])('the limits also hold for the charge of `settle`: %s', async (_, limits) => {
    const errors: unknown[] = []
    const store = newStore()
    const onSettleError = (error: unknown) => errors.push(error)
    const { onFinished } = await plainGuard({ limits, store, settle: () => 3, onSettleError })('pro-bob')
    onFinished!({ status: 200, isComplete: true, header: () => undefined })
    const pro = createLimiter({ name: 'default', limits: plans.pro, store })
    await vi.waitFor(async () => expect((await pro.peek('pro-bob')).remaining).toBe(0))
    expect(errors).toEqual([])
  })
})

describe('a verdict', () => {
  it('allows with headers, then denies with a whole response', async () => {
    const guard = plainGuard({ limits, store: newStore() })
    expect(await guard('ann')).toEqual({
      headers: [
        {
          format: 'draft-11',
          isDenial: false,
          headers: [
            { name: 'RateLimit-Policy', value: '"two";q=2;w=60' },
            { name: 'RateLimit', value: '"two";r=1;t=60' },
          ],
        },
      ],
    })
    await guard('ann')
    const verdict = await guard('ann')
    expect(fieldsOf(verdict)).toEqual({
      'RateLimit-Policy': '"two";q=2;w=60',
      RateLimit: '"two";r=0;t=60',
      'Retry-After': '60',
      'Content-Type': 'application/problem+json',
    })
    expect(verdict.denial).toMatchObject({ action: 'answer', status: 429 })
    expect(bodyOf(verdict)).toEqual({
      type: 'https://iana.org/assignments/http-problem-types#quota-exceeded',
      title: 'Request cannot be satisfied as assigned quota has been exceeded',
      status: 429,
      'violated-policies': ['two'],
    })
    expect((await guard('bob')).denial).toBeUndefined()
  })

  it('is what those who ask the limiter themselves can answer, too', async () => {
    const limiter = createLimiter({ limits, store: newStore() })
    const guard = plainGuard({ limiter }, { header: () => 'text/html' })
    for (let i = 0; i < 2; i++) await guard('ann')
    const { denial } = await guard('ann')
    const decision = await limiter.consume('ann')
    expect(denial).toEqual({ action: 'answer', ...denialOf(decision, { accept: 'text/html' }) })
    expect(denialOf(decision, { disclose: false }).headers.map(({ name }) => name)).toEqual(['Content-Type'])
  })

  it('is there at once where nothing is to be waited for', () => {
    const guard = plainGuard({ limits, skip: () => false, cost: () => 2 })
    expect(fieldsOf(guard('ann') as Verdict)).toMatchObject({ RateLimit: '"two";r=0;t=60' })
    expect(guard('ann')).toMatchObject({ denial: { status: 429 } })
  })

  it.each<[string, Options]>([
    ['key', { limits, key: async (request) => request }],
    ['cost', { limits, cost: async () => 1 }],
    ['skip', { limits, skip: async () => false }],
    ['store', { limits, store: elsewhere() }],
    ['limiter that only promises', { limiter: promising() }],
  ])('is the same where something has to be waited for: the %s', async (_, options) => {
    const guard = plainGuard(options)
    for (const remaining of [1, 0]) {
      const verdict = guard('ann')
      expect(verdict).toBeInstanceOf(Promise)
      expect(fieldsOf(await verdict)).toMatchObject({ RateLimit: `"two";r=${remaining};t=60` })
    }
    expect(await guard('ann')).toMatchObject({ denial: { status: 429 } })
  })

  it('of a limiter that was closed is an error, not another way to ask', () => {
    const closed = createLimiter({ limits })
    closed.close()
    const guard = plainGuard({ limiter: closed })
    expect(() => guard('ann')).toThrow(expect.objectContaining({ code: 'closed' }))
  })

  it('of a skipped request asks for nothing', async () => {
    const never = () => {
      throw new Error('asked')
    }
    const guard = plainGuard({ limits, skip: () => true, key: never, cost: never }, { address: never })
    expect(await guard('ann')).toEqual({ headers: [] })
  })
})

describe('a verdict without the store', () => {
  it.each(['deny', 'allow'] as const)('of a memory store that is full, at once: %s', (onFull) => {
    for (const options of [{ onFull }, { onStoreError: onFull }]) {
      const store = memoryStore({ maxKeys: 1, ...('onFull' in options && options) })
      const limiter = createLimiter({ limits, store, ...('onStoreError' in options && options) })
      const guard = plainGuard({ limiter })
      for (let i = 0; i < 2; i++) guard('ann')
      const verdict = guard('bob') as Verdict
      if (onFull === 'allow') expect(verdict).toEqual({ headers: [] })
      else {
        expect(fieldsOf(verdict)).toHaveProperty('Retry-After')
        expect(verdict).toMatchObject({ headers: [], denial: { status: 503 } })
      }
    }
  })
})

/** A store that answers later, as one in another process does. */
function elsewhere(): Store {
  const store = memoryStore()
  return {
    failurePolicy,
    apply: (ops, call) => queueMicrotask(() => store.apply(ops, call)),
    close() {},
  }
}

/** What options take for a limiter although it has no other method. */
function promising(): Limiter {
  const limiter = createLimiter({ limits })
  return { consume: (key: string) => limiter.consume(key) } as Limiter
}

function bodyOf({ denial }: Verdict): unknown {
  return denial?.action === 'answer' ? JSON.parse(denial.body) : undefined
}

function thrownBy(act: () => unknown): unknown {
  try {
    act()
  } catch (error) {
    return error
  }
  return undefined
}

describe('onSettleError', () => {
  it.each<[string, () => unknown]>([
    [
      'throws',
      () => {
        throw new Error('told in vain')
      },
    ],
    ['rejects', () => Promise.reject(new Error('told in vain'))],
  ])('that %s does not end the process', async (_, onSettleError) => {
    const warn = vi.spyOn(console, 'warn').mockReturnValue()
    onTestFinished(() => warn.mockRestore())
    const guard = plainGuard({ limits, settle: () => -1, onSettleError })
    const { onFinished } = await guard('caller')
    onFinished!({ status: 200, isComplete: true, header: () => undefined })
    await expect.poll(() => warn.mock.calls.length).toBeGreaterThan(0)
    expect(warn.mock.calls).toEqual([['slidegate: a response could not be settled: told in vain']])
  })
})

describe('a policy for the denied that has to be waited for', () => {
  it('is that of the request', async () => {
    const guard = plainGuard({ limits, denied: async (request) => (request === 'a' ? 'drop' : 'reject') })
    for (const caller of ['a', 'a', 'b', 'b']) expect((await guard(caller)).denial).toBeUndefined()
    expect((await guard('a')).denial).toEqual({ action: 'drop' })
    expect((await guard('b')).denial).toMatchObject({ action: 'answer', status: 429 })
  })

  it('is that of who is on the list of the denied, too', async () => {
    const guard = plainGuard({ limits, deny: ['192.0.2.1'], denied: async () => 'drop' as const })
    expect((await guard('192.0.2.1')).denial).toEqual({ action: 'drop' })
  })

  it.each<[string, PlainDenied]>([
    ['rejects', () => Promise.reject(new Error('no policy'))],
    ['is none', (async () => 'wait') as unknown as PlainDenied],
  ])('and %s is an error of the request', async (_, denied) => {
    await expect(plainGuard({ limits, denied })('caller')).rejects.toThrow(/no policy|denied is "wait"/)
  })
})

describe('a queue', () => {
  it('has all its places for those who have to wait, also where all come at once', async () => {
    const limiter = createLimiter({
      limits: [slidingWindow({ limit: 10, window: '1m' })],
      store: newStore(),
    })
    const controller = new AbortController()
    const options: Options = { limiter, key: () => 'k', denied: { queue: 5, maxWait: '1h' } }
    const guard = plainGuard(options, { signal: () => controller.signal })
    const actions: (string | undefined)[] = []
    const all = Array.from({ length: 100 }, async () => actions.push((await guard('k')).denial?.action))
    await expect.poll(() => actions.length).toBeGreaterThanOrEqual(95)
    expect(limiter.waiting().length).toBe(5)
    controller.abort()
    await Promise.all(all)
    expect(
      [undefined, 'answer', 'drop'].map((each) => actions.filter((action) => action === each).length),
    ).toEqual([10, 85, 5])
  })
})
