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
/** Creates a store in which no time passes. */
const newStore = (): Store => memoryStore({ clock: () => 1_700_000_000_000 })
const limiter = createLimiter({ name: 'shared', limits })

type PlainDenied = NonNullable<Options['denied']>

interface Refusal {
  readonly message?: RegExp
  readonly value?: unknown
  readonly binding?: Partial<Binding<[string]>>
}

describe('rejected options:', () => {
  const store = { failurePolicy, apply: async () => [], close: () => {} }
  it.each<[string, unknown, Refusal]>([
    ['none at all', undefined, { value: undefined }],
    ['no object', 'draft-7', { value: 'draft-7' }],
    ['neither limits nor a limiter', { name: 'api' }, { message: /neither/ }],
    ['a limiter and limits', { limiter, limits }, { value: limits }],
    ['a limiter and a name', { limiter, name: 'api' }, { value: 'api' }],
    ['a limiter and a store', { limiter, store }, { value: store }],
    ['a limiter that is a string', { limiter: 'api' }, { value: 'api' }],
    ['a null limiter', { limiter: null }, { value: null }],
    ['no store', { limits, store: {} }, { value: {} }],
    ['an unknown header format', { limits, headers: 'draft-8' }, { value: 'draft-8' }],
    [
      'a header format named like a property of every object',
      { limits, headers: 'toString' },
      { value: 'toString' },
    ],
    ['headers: true', { limits, headers: true }, { value: true }],
    ['two drafts at once', { limits, headers: ['draft-11', 'draft-7'] }, { value: ['draft-11', 'draft-7'] }],
    ['a format twice', { limits, headers: ['legacy', 'legacy'] }, { value: ['legacy', 'legacy'] }],
    ['formats with an unknown one', { limits, headers: ['legacy', null] }, { value: ['legacy', null] }],
    ['headers that are not a string', { limits, headers: Object.create(null) }, { value: {} }],
    ['a key that is not a function', { limits, key: 'ip' }, { value: 'ip' }],
    ['a cost that is not a function', { limits, cost: 2 }, { value: 2 }],
    ['a skip that is not a function', { limits, skip: true }, { value: true }],
    [
      'a concurrency limit, which middleware would never release',
      { limits: [concurrency({ limit: 1, ttl: '1s', name: 'held' })] },
      { value: 'held', message: /call its limiter/ },
    ],
    [
      'a limiter with a distinct limit, for which middleware has no values',
      { limiter: createLimiter({ limits: [distinct({ limit: 1, window: '1s', name: 'values' })] }) },
      { value: 'values', message: /call its limiter/ },
    ],
    ['a null skip', { limits, skip: null }, { value: null }],
    ['an onDenied that is not a function', { limits, onDenied: {} }, { value: {} }],
    ['an onAllowed that is not a function', { limits, onAllowed: 1 }, { value: 1 }],
    ['a settle that is not a function', { limits, settle: 5 }, { value: 5 }],
    ['an onSettleError that is not a function', { limits, onSettleError: true }, { value: true }],
    ['an unknown refundIf', { limits, refundIf: 'success' }, { value: 'success' }],
    ['a refundIf that is true', { limits, refundIf: true }, { value: true }],
    ['a disclose that is not a boolean', { limits, disclose: 'no' }, { value: 'no' }],
    ['a list that is not an array', { limits, allow: '10.0.0.0/8' }, { value: '10.0.0.0/8' }],
    ['an invalid address in a list', { limits, deny: ['10.0.0.0/8', 'localhost'] }, { value: 'localhost' }],
    ['a network with host bits', { limits, allow: ['10.0.0.1/8'] }, { value: '10.0.0.1/8' }],
    ['a number in a list', { limits, deny: [7] }, { value: 7 }],
    [
      'a public range of trusted proxies',
      { limits, address: { trust: ['0.0.0.0/0'] } },
      { value: '0.0.0.0/0' },
    ],
    ['addresses without trust', { limits, address: {} }, { value: undefined }],
    ['an unknown policy', { limits, denied: 'wait' }, { value: 'wait' }],
    ['a null policy', { limits, denied: null }, { value: null }],
    [
      'two policies in one',
      { limits, denied: { delay: '1s', queue: 5 } },
      { value: { delay: '1s', queue: 5 } },
    ],
    [
      'a delay with an option of a queue',
      { limits, denied: { delay: '1s', maxWait: '2s' } },
      { value: 'maxWait', message: /for denied: \{ delay \}; expected one of: delay$/ },
    ],
    [
      'a queue with a misspelled option',
      { limits, denied: { queue: 1, maxwait: '1s' } },
      { value: 'maxwait', message: /for denied: \{ queue \}; did you mean "maxWait"\?$/ },
    ],
    [
      'an address with a misspelled option',
      { limits, address: { trust: 1, hedder: 'forwarded' } },
      { value: 'hedder', message: /for address; did you mean "header"\?$/ },
    ],
    ['a delay of 0', { limits, denied: { delay: 0 } }, { value: 0 }],
    ['a delay that is not a duration', { limits, denied: { delay: 'long' } }, { value: 'long' }],
    ['a delay that is longer than timers allow', { limits, denied: { delay: '30d' } }, { value: '30d' }],
    ['a queue of 0', { limits, denied: { queue: 0 } }, { value: 0 }],
    ['a queue of 1.5', { limits, denied: { queue: 1.5 } }, { value: 1.5 }],
    ['a queue above the maximum', { limits, denied: { queue: 2 ** 21 } }, { value: 2 ** 21 }],
    [
      'a queue with an infinite wait',
      { limits, denied: { queue: 1, maxWait: Infinity } },
      { value: Infinity },
    ],
    [
      'a delay with a limiter that has no wait',
      { limiter: promising(), denied: { delay: 5 } },
      { value: { delay: 5 }, message: /has no wait/ },
    ],
    [
      'a refund with a limiter that has no refund',
      { limiter: promising(), refundIf: 'failed' },
      { message: /can't refund/ },
    ],
    [
      'drop on a platform that does not close connections',
      { limits, denied: 'drop' },
      { value: 'drop', message: /can't close a connection/, binding: { canDrop: false } },
    ],
  ])('%s', (_, options, { message = /must|pass|set|list|write|use/, value, binding }: Refusal) => {
    const error = thrownBy(() => plainGuard(options as Options, binding))
    expect(error).toBeInstanceOf(SlidegateError)
    expect(error).toMatchObject({ code: 'invalid_option', message: expect.stringMatching(message) })
    if (value !== undefined) expect((error as SlidegateError).value).toEqual(value)
  })

  it('a limiter in place of the options', () => {
    expect(() => createGuard(limiter as never, {} as never)).toThrow(
      expect.objectContaining({ code: 'invalid_option', message: expect.stringMatching(/\{ limiter \}/) }),
    )
  })

  it('limits that createLimiter rejects', () => {
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
  ])('sets the limits of each key: %s', async (_, limits) => {
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

  it('gets the key and the request once per request, even if it waits', async () => {
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

  it('never gets an invalid key', async () => {
    const limits = vi.fn(async () => plans.free)
    for (const key of ['', undefined, 7]) {
      const guard = plainGuard({ limits, key: () => key as string })
      await expect(async () => guard('ann')).rejects.toMatchObject({ code: 'invalid_key' })
    }
    expect(limits).not.toHaveBeenCalled()
  })

  it('fails the request if it throws or returns no limits', async () => {
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
  ])('sets the limits for the charge of `settle`, too: %s', async (_, limits) => {
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
  it('allows with headers, then denies with a complete response', async () => {
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

  it('equals denialOf for code that calls the limiter directly', async () => {
    const limiter = createLimiter({ limits, store: newStore() })
    const guard = plainGuard({ limiter }, { header: () => 'text/html' })
    for (let i = 0; i < 2; i++) await guard('ann')
    const { denial } = await guard('ann')
    const decision = await limiter.consume('ann')
    expect(denial).toEqual({ action: 'answer', ...denialOf(decision, { accept: 'text/html' }) })
    expect(denialOf(decision, { disclose: false }).headers.map(({ name }) => name)).toEqual(['Content-Type'])
  })

  it('returns synchronously if nothing is asynchronous', () => {
    const guard = plainGuard({ limits, skip: () => false, cost: () => 2 })
    expect(fieldsOf(guard('ann') as Verdict)).toMatchObject({ RateLimit: '"two";r=0;t=60' })
    expect(guard('ann')).toMatchObject({ denial: { status: 429 } })
  })

  it.each<[string, Options]>([
    ['key', { limits, key: async (request) => request }],
    ['cost', { limits, cost: async () => 1 }],
    ['skip', { limits, skip: async () => false }],
    ['store', { limits, store: elsewhere() }],
    ['limiter without consumeSync', { limiter: promising() }],
  ])('resolves to the same if something is asynchronous: the %s', async (_, options) => {
    const guard = plainGuard(options)
    for (const remaining of [1, 0]) {
      const verdict = guard('ann')
      expect(verdict).toBeInstanceOf(Promise)
      expect(fieldsOf(await verdict)).toMatchObject({ RateLimit: `"two";r=${remaining};t=60` })
    }
    expect(await guard('ann')).toMatchObject({ denial: { status: 429 } })
  })

  it('throws for a closed limiter', () => {
    const closed = createLimiter({ limits })
    closed.close()
    const guard = plainGuard({ limiter: closed })
    expect(() => guard('ann')).toThrow(expect.objectContaining({ code: 'closed' }))
  })

  it('calls no other function for a skipped request', async () => {
    const never = () => {
      throw new Error('asked')
    }
    const guard = plainGuard({ limits, skip: () => true, key: never, cost: never }, { address: never })
    expect(await guard('ann')).toEqual({ headers: [] })
  })
})

describe('retryJitter', () => {
  const once = [slidingWindow({ limit: 1, window: '1h' })]

  it('delays the retry of each denial by a random time, in all headers alike', async () => {
    const guard = plainGuard({ limits: once, store: newStore(), retryJitter: '1m' })
    expect(fieldsOf(await guard('ann'))['Retry-After']).toBeUndefined()
    const waits = new Set<number>()
    for (let i = 0; i < 300; i++) {
      const fields = fieldsOf(await guard('ann'))
      const wait = Number(fields['Retry-After'])
      waits.add(wait)
      expect(fields.RateLimit).toMatch(new RegExp(`;t=${wait}$`))
    }
    expect(Math.min(...waits)).toBeGreaterThanOrEqual(3600)
    expect(Math.max(...waits)).toBeLessThanOrEqual(3660)
    expect(waits.size).toBeGreaterThan(30)
  })

  it('onDenied receives the delayed retry', async () => {
    const told: number[] = []
    const onDenied = ({ retryAfterMs }: { retryAfterMs: number }) => told.push(retryAfterMs)
    const guard = plainGuard({ limits: once, store: newStore(), retryJitter: '1h', onDenied })
    for (let i = 0; i < 50; i++) {
      const { denial } = await guard('ann')
      if (denial?.action === 'custom') denial.answer()
    }
    expect(told.length).toBe(49)
    expect(Math.max(...told)).toBeGreaterThan(3_600_000)
  })

  it.each(['0s', '1ms', 'soon', -1])('rejects %j', (retryJitter) => {
    expect(() => plainGuard({ limits: once, retryJitter: retryJitter as '1m' })).toThrow(
      expect.objectContaining({ code: 'invalid_duration', message: expect.stringContaining('retryJitter') }),
    )
  })
})

describe('a verdict without the store', () => {
  it.each(['deny', 'allow'] as const)('returns synchronously if the memory store is full: %s', (onFull) => {
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

/** Creates a store that responds later, like one in another process. */
function elsewhere(): Store {
  const store = memoryStore()
  return {
    failurePolicy,
    apply: (ops, call) => queueMicrotask(() => store.apply(ops, call)),
    close() {},
  }
}

/** Creates a limiter that has only `consume`. The options accept it. */
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
        throw new Error('thrown by onSettleError')
      },
    ],
    ['rejects', () => Promise.reject(new Error('thrown by onSettleError'))],
  ])('never ends the process if it %s', async (_, onSettleError) => {
    const warn = vi.spyOn(console, 'warn').mockReturnValue()
    onTestFinished(() => warn.mockRestore())
    const guard = plainGuard({ limits, settle: () => -1, onSettleError })
    const { onFinished } = await guard('caller')
    onFinished!({ status: 200, isComplete: true, header: () => undefined })
    await expect.poll(() => warn.mock.calls.length).toBeGreaterThan(0)
    expect(warn.mock.calls).toEqual([
      ["slidegate: couldn't refund or charge after a response: thrown by onSettleError"],
    ])
  })
})

describe('an async `denied` function', () => {
  it('returns the policy of the request', async () => {
    const guard = plainGuard({ limits, denied: async (request) => (request === 'a' ? 'drop' : 'reject') })
    for (const caller of ['a', 'a', 'b', 'b']) expect((await guard(caller)).denial).toBeUndefined()
    expect((await guard('a')).denial).toEqual({ action: 'drop' })
    expect((await guard('b')).denial).toMatchObject({ action: 'answer', status: 429 })
  })

  it('returns the policy of clients in `deny`, too', async () => {
    const guard = plainGuard({ limits, deny: ['192.0.2.1'], denied: async () => 'drop' as const })
    expect((await guard('192.0.2.1')).denial).toEqual({ action: 'drop' })
  })

  it.each<[string, PlainDenied]>([
    ['rejects', () => Promise.reject(new Error('no policy'))],
    ['returns an unknown policy', (async () => 'wait') as unknown as PlainDenied],
  ])('fails the request if it %s', async (_, denied) => {
    await expect(plainGuard({ limits, denied })('caller')).rejects.toThrow(/no policy|denied is "wait"/)
  })
})

describe('a queue', () => {
  it('uses all its places for waiters, even if all requests arrive at once', async () => {
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
