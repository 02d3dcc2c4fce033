import { parseList } from 'structured-headers'
import { describe, expect, it, onTestFinished } from 'vitest'
import type { GuardOptions, HandlerArguments } from '../../src/http/index.ts'
import { createLimiter, memoryStore, StoreUnavailableError, slidingWindow } from '../../src/index.ts'

/** What a framework's adapter brings along to be held to the promises that all adapters share. */
export interface AdapterUnderTest<Args extends HandlerArguments> {
  /**
   * A real server on loopback. Every request passes `rateLimit` of each of the options, in order, and is then
   * answered with `served`, 200. Errors are recorded and answered with 500. `behindProxy`: the framework
   * trusts a proxy on loopback, and nobody else, to say who the client is.
   */
  serve(options: readonly GuardOptions<Args>[], settings?: { behindProxy?: boolean }): Promise<Server>
  /** What a request says in a header, as a `key`, `cost` or `skip` function would read it. */
  header(request: Args[0], name: string): string | undefined
  /** An `onDenied` that answers with 418 and `cost <the decision's cost>`. */
  readonly teapot: NonNullable<GuardOptions<Args>['onDenied']>
}

export interface Server {
  readonly url: string
  /** Requests that came past the limiters. */
  served(): number
  /** What the framework's error handler was given, one entry per call. */
  readonly errors: readonly unknown[]
  close(): Promise<void>
}

const START_MS = 1_700_000_000_000

/** The promises of `rateLimit`, whatever the framework. */
export function adapterSuite<Args extends HandlerArguments>(adapter: AdapterUnderTest<Args>): void {
  let nowMs = START_MS
  const clock = () => nowMs
  const perMinute = (limit: number) => slidingWindow({ limit, window: '1m', name: 'per-minute' })

  async function serve(
    options: GuardOptions<Args> | readonly GuardOptions<Args>[],
    settings?: { behindProxy?: boolean },
  ): Promise<Server> {
    nowMs = START_MS
    const server = await adapter.serve([options].flat(), settings)
    onTestFinished(() => server.close())
    return server
  }

  function limitedTo(limit: number, options: GuardOptions<Args> = {}): GuardOptions<Args> {
    return { limits: [perMinute(limit)], store: memoryStore({ clock }), ...options }
  }

  describe('a request within the limits', () => {
    it('is served, with the quota that is left', async () => {
      const server = await serve(limitedTo(3))
      const response = await fetch(server.url)
      expect([response.status, await response.text()]).toEqual([200, 'served'])
      expect(list(response, 'RateLimit-Policy')).toEqual([['per-minute', { q: 3, w: 60 }]])
      expect(list(response, 'RateLimit')).toEqual([['per-minute', { r: 2, t: 60 }]])
      expect(response.headers.has('Retry-After')).toBe(false)
    })

    it('is told of all limits but shadow ones', async () => {
      const limits = [
        slidingWindow({ limit: 5, window: '500ms', name: 'burst' }),
        slidingWindow({ limit: 1, window: '1h', name: 'tried', shadow: true }),
        slidingWindow({ limit: 9, window: '1h', name: 'hourly' }),
      ]
      const response = await fetch((await serve({ limits, store: memoryStore({ clock }) })).url)
      expect(list(response, 'RateLimit-Policy')).toEqual([
        ['burst', { q: 5 }],
        ['hourly', { q: 9, w: 3600 }],
      ])
      expect(list(response, 'RateLimit')).toEqual([
        ['burst', { r: 4, t: 1 }],
        ['hourly', { r: 8, t: 3600 }],
      ])
    })

    it('has no rate limit headers where all limits are shadows', async () => {
      const limits = [slidingWindow({ limit: 1, window: '1m', shadow: true })]
      const server = await serve({ limits, store: memoryStore({ clock }) })
      await fetch(server.url)
      const response = await fetch(server.url)
      expect([response.status, rateLimitHeaders(response)]).toEqual([200, []])
    })

    it('is limited by the memory of the process where no store is given', async () => {
      const server = await serve({ limits: [perMinute(1)] })
      expect(await statuses(server, 2)).toEqual([200, 429])
    })
  })

  describe('a denied request', () => {
    it('is answered with 429 and a problem body, and not served', async () => {
      const server = await serve(limitedTo(1))
      await fetch(server.url)
      nowMs += 12_345
      const response = await fetch(server.url)
      expect(response.status).toBe(429)
      expect(response.headers.get('Content-Type')).toBe('application/problem+json')
      expect(await response.json()).toEqual({
        type: 'https://iana.org/assignments/http-problem-types#quota-exceeded',
        title: expect.any(String),
        status: 429,
        'violated-policies': ['per-minute'],
      })
      expect(response.headers.get('Retry-After')).toBe('48')
      expect(list(response, 'RateLimit')).toEqual([['per-minute', { r: 0, t: 48 }]])
      expect([server.served(), server.errors]).toEqual([1, []])
    })

    it('is charged nothing: the next one is admitted after Retry-After, however many came meanwhile', async () => {
      const server = await serve(limitedTo(1))
      expect(await statuses(server, 20)).toEqual([200, ...Array(19).fill(429)])
      nowMs += 59_999
      expect(await statuses(server, 1)).toEqual([429])
      nowMs += 1
      expect(await statuses(server, 2)).toEqual([200, 429])
    })

    it('has no body if it was a HEAD request, and the same headers', async () => {
      const server = await serve(limitedTo(1))
      await fetch(server.url)
      const head = await fetch(server.url, { method: 'HEAD' })
      const get = await fetch(server.url)
      expect([head.status, await head.text()]).toEqual([429, ''])
      // Content-Length may be left out of an answer to HEAD.
      const ofTheMoment = ['date', 'connection', 'keep-alive', 'content-length']
      const comparable = ({ headers }: Response) =>
        [...headers].filter(([name]) => !ofTheMoment.includes(name))
      expect(comparable(head)).toEqual(comparable(get))
    })

    it('is answered by onDenied instead, the headers being set', async () => {
      const server = await serve(limitedTo(1, { cost: () => 1, onDenied: adapter.teapot }))
      await fetch(server.url)
      const response = await fetch(server.url)
      expect([response.status, await response.text()]).toEqual([418, 'cost 1'])
      expect(response.headers.get('Retry-After')).toBe('60')
      expect(list(response, 'RateLimit')).toEqual([['per-minute', { r: 0, t: 60 }]])
      expect(server.served()).toBe(1)
    })

    it('has no Retry-After and no t where it never will be admitted', async () => {
      const response = await fetch((await serve(limitedTo(3, { cost: () => 4 }))).url)
      expect([response.status, response.headers.get('Retry-After')]).toEqual([429, null])
      expect(list(response, 'RateLimit')).toEqual([['per-minute', { r: 3 }]])
    })
  })

  describe('options', () => {
    const said = (name: string) => (request: Args[0]) => adapter.header(request, name)
    const ask = (server: Server, headers: Record<string, string>) => fetch(server.url, { headers })

    it.each(['sync', 'async'])('key tells callers apart (%s)', async (kind) => {
      const key = said('x-user') as (request: Args[0]) => string
      const server = await serve(
        limitedTo(1, { key: kind === 'sync' ? key : async (request) => key(request) }),
      )
      const users = ['ann', 'bob', 'ann', 'bob']
      const answers = await inTurn(users, (user) => ask(server, { 'x-user': user }))
      expect(answers.map(({ status }) => status)).toEqual([200, 200, 429, 429])
    })

    it.each(['sync', 'async'])('cost says how many units are taken (%s)', async (kind) => {
      const cost = (request: Args[0]) => Number(adapter.header(request, 'x-units'))
      const server = await serve(
        limitedTo(10, { cost: kind === 'sync' ? cost : async (request) => cost(request) }),
      )
      const answers = await inTurn(['7', '4', '3'], (units) => ask(server, { 'x-units': units }))
      expect(answers.map(({ status }) => status)).toEqual([200, 429, 200])
    })

    it.each(['sync', 'async'])('skip lets pass uncounted, only for true (%s)', async (kind) => {
      const skip = (request: Args[0]) =>
        adapter.header(request, 'x-skip') === 'yes' || ('no' as unknown as boolean)
      const server = await serve(
        limitedTo(1, { skip: kind === 'sync' ? skip : async (request) => skip(request) }),
      )
      const answers = await inTurn(['yes', 'yes', 'no', 'yes', 'no'], (word) =>
        ask(server, { 'x-skip': word }),
      )
      expect(answers.map(({ status }) => status)).toEqual([200, 200, 200, 200, 429])
      expect(answers.map((response) => response.headers.has('RateLimit'))).toEqual([
        false,
        false,
        true,
        false,
        true,
      ])
    })

    it('a limiter can be shared', async () => {
      const limiter = createLimiter({ name: 'shared', limits: [perMinute(2)], store: memoryStore({ clock }) })
      const key = () => 'ann'
      const [one, other] = [await serve({ limiter, key }), await serve({ limiter, key })]
      expect([await statuses(one, 1), await statuses(other, 2), await statuses(one, 1)]).toEqual([
        [200],
        [200, 429],
        [429],
      ])
    })

    it('headers: draft-7', async () => {
      const server = await serve(limitedTo(1, { headers: 'draft-7' }))
      const expected = { 'ratelimit-policy': '1;w=60', ratelimit: 'limit=1, remaining=0, reset=60' }
      expect(Object.fromEntries(rateLimitHeaders(await fetch(server.url)))).toEqual(expected)
      nowMs += 10_000
      const denied = await fetch(server.url)
      expect(denied.headers.get('RateLimit')).toBe('limit=1, remaining=0, reset=50')
      expect(denied.headers.get('Retry-After')).toBe('50')
    })

    it('headers: legacy', async () => {
      const response = await fetch((await serve(limitedTo(3, { headers: 'legacy' }))).url)
      expect(Object.fromEntries(rateLimitHeaders(response))).toEqual({
        'x-ratelimit-limit': '3',
        'x-ratelimit-remaining': '2',
        'x-ratelimit-reset': `${START_MS / 1000 + 60}`,
      })
    })

    it('headers: false leaves Retry-After alone', async () => {
      const server = await serve(limitedTo(1, { headers: false }))
      expect(rateLimitHeaders(await fetch(server.url))).toEqual([])
      const denied = await fetch(server.url)
      expect([rateLimitHeaders(denied), denied.headers.get('Retry-After')]).toEqual([[], '60'])
    })

    it('that contradict each other are refused at construction', async () => {
      await expect(adapter.serve([{}])).rejects.toMatchObject({ code: 'invalid_option' })
    })
  })

  it('several limiters on one route merge into one list', async () => {
    const hourly = slidingWindow({ limit: 9, window: '1h', name: 'hourly' })
    const server = await serve([limitedTo(2), { limits: [hourly], store: memoryStore({ clock }) }])
    const response = await fetch(server.url)
    expect(list(response, 'RateLimit-Policy')).toEqual([
      ['per-minute', { q: 2, w: 60 }],
      ['hourly', { q: 9, w: 3600 }],
    ])
    expect(list(response, 'RateLimit')).toEqual([
      ['per-minute', { r: 1, t: 60 }],
      ['hourly', { r: 8, t: 3600 }],
    ])
  })

  describe("an error is the framework's, once, and never a way around the limit", () => {
    const thrown = new Error('thrown by the user')
    const fail = () => {
      throw thrown
    }
    const unavailable = new StoreUnavailableError('error', 'the store is down')
    const broken = { apply: () => Promise.reject(unavailable), close: () => {} }

    it.each<[string, GuardOptions<Args>, unknown]>([
      ['a key that is undefined', { key: () => undefined as unknown as string }, { code: 'invalid_key' }],
      ['a key that is empty', { key: async () => '' }, { code: 'invalid_key', value: '' }],
      ['a key that is no string', { key: () => 7 as unknown as string }, { code: 'invalid_key', value: 7 }],
      ['a cost of 0', { cost: () => 0 }, { code: 'invalid_cost', value: 0 }],
      ['a cost of 1.5', { cost: async () => 1.5 }, { code: 'invalid_cost', value: 1.5 }],
      ['a cost that is undefined', { cost: () => undefined as unknown as number }, { code: 'invalid_cost' }],
      ['a key function that throws', { key: fail }, thrown],
      ['a cost function that throws', { cost: fail }, thrown],
      ['a skip function that throws', { skip: fail }, thrown],
      ['a key function that rejects', { key: () => Promise.reject(thrown) }, thrown],
      ['a store that cannot decide', { store: broken }, unavailable],
    ])('%s', async (_, options, error) => {
      const server = await serve(limitedTo(5, options))
      const response = await fetch(server.url)
      expect([response.status, rateLimitHeaders(response)]).toEqual([500, []])
      expect(server.errors).toEqual([error instanceof Error ? error : expect.objectContaining(error)])
      expect(server.served()).toBe(0)
    })

    it.each([
      ['throws', fail],
      ['rejects', () => Promise.reject(thrown)],
    ])('an onDenied that %s', async (_, onDenied) => {
      const server = await serve(limitedTo(1, { onDenied }))
      expect(await statuses(server, 2)).toEqual([200, 500])
      expect(server.errors).toEqual([thrown])
    })

    it.each([undefined, null, 0, 'route', 'router'])('even if what is thrown is %s', async (reason) => {
      const server = await serve(limitedTo(1, { key: () => Promise.reject(reason) }))
      expect(await statuses(server, 1)).toEqual([500])
      expect(server.errors).toEqual([expect.objectContaining({ cause: reason })])
      expect(server.served()).toBe(0)
    })
  })

  describe("the client's address", () => {
    const from = (server: Server, forwardedFor: string) =>
      fetch(server.url, { headers: { 'X-Forwarded-For': forwardedFor } })

    /** Whether requests from these addresses, in turn, are admitted, each caller having one request. */
    async function admitted(addresses: readonly string[]): Promise<boolean[]> {
      const server = await serve(limitedTo(1), { behindProxy: true })
      const answers = await inTurn(addresses, (address) => from(server, address))
      expect(server.errors).toEqual([])
      return answers.map(({ status }) => status === 200)
    }

    it('CVE-2026-30827: IPv4-mapped callers are not one caller', async () => {
      expect(await admitted(['::ffff:192.0.2.1', '::ffff:192.0.2.2', '::ffff:c000:203'])).toEqual([
        true,
        true,
        true,
      ])
    })

    it('CVE-2026-30827: an IPv4-mapped caller is the IPv4 caller', async () => {
      const spellings = ['192.0.2.1', '::ffff:192.0.2.1', '::ffff:c000:201', '0:0:0:0:0:FFFF:C000:0201']
      expect(await admitted(spellings)).toEqual([true, false, false, false])
    })

    it('CVE-2026-45364: IPv6 rotation within a network of 64 bits is one caller', async () => {
      const rotation = [
        '2001:db8:1:2::1',
        '2001:db8:1:2::2',
        '2001:db8:1:2:ffff:ffff:ffff:ffff',
        '2001:db8:1:3::1',
      ]
      expect(await admitted(rotation)).toEqual([true, false, false, true])
    })

    it('CVE-2026-45364: alternate spellings of an address are one caller', async () => {
      const spellings = [
        '2001:db8::a:1',
        '2001:DB8::A:1',
        '2001:0db8:0:0:0:0:000a:0001',
        '2001:db8::0.10.0.1',
        '2001:db8::a:1%eth0',
      ]
      expect(await admitted(spellings)).toEqual([true, false, false, false, false])
    })

    it('CVE-2026-27700: what the caller wrote into X-Forwarded-For, leftmost, is not believed', async () => {
      const server = await serve(limitedTo(1), { behindProxy: true })
      const answers = await inTurn(
        ['6.6.6.1, 192.0.2.1', '6.6.6.2, 192.0.2.1', '6.6.6.1, 192.0.2.2'],
        (chain) => from(server, chain),
      )
      expect(answers.map(({ status }) => status)).toEqual([200, 429, 200])
    })

    it('CVE-2026-27700: without a proxy, X-Forwarded-For is not believed at all', async () => {
      const server = await serve(limitedTo(1))
      const answers = await inTurn(['192.0.2.1', '192.0.2.2'], (address) => from(server, address))
      expect(answers.map(({ status }) => status)).toEqual([200, 429])
    })

    it('shares one bucket where it cannot be read', async () => {
      const unreadable = [
        'unknown',
        'not an address',
        '192.0.2.1:4711',
        '0xc0.0.2.1',
        '192.0.2.001',
        '192.0.2.1',
      ]
      expect(await admitted(unreadable)).toEqual([true, false, false, false, false, true])
    })
  })
}

async function inTurn<T, R>(items: readonly T[], ask: (item: T) => Promise<R>): Promise<R[]> {
  const answers: R[] = []
  for (const item of items) answers.push(await ask(item))
  return answers
}

async function statuses(server: Server, requests: number): Promise<number[]> {
  return await inTurn(Array(requests).fill(server.url), async (url) => (await fetch(url)).status)
}

/** A structured field list as an independent parser reads it. */
function list(response: Response, name: string): [unknown, Record<string, unknown>][] {
  return parseList(response.headers.get(name) ?? '').map(([item, parameters]) => [
    item,
    Object.fromEntries(parameters),
  ])
}

function rateLimitHeaders(response: Response): [string, string][] {
  return [...response.headers].filter(([name]) => name.includes('ratelimit'))
}
