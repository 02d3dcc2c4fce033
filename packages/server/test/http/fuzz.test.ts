// tier: integration
import { setTimeout } from 'node:timers/promises'
import fc from 'fast-check'
import { pino } from 'pino'
import { Agent, type Dispatcher } from 'undici'
import { describe, expect, it, onTestFinished } from 'vitest'
import { anyCharacter } from '../../../slidegate/test/support/characters.ts'
import type { Config } from '../../src/config/schema.ts'
import { Described, type OpenApi, type Operation } from '../support/described.ts'
import { withRedis } from '../support/redis.ts'
import { type TestService, testService } from '../support/service.ts'

const timeoutMs = 30_000
const window = [{ kind: 'slidingWindow', limit: 1000, window: '1h' }] as const

const limiters: Config['limiters'] = {
  api: {
    limits: [...window],
    plans: { big: { limits: [...window] } },
    choosePlan: true,
    timeoutMs,
  },
  bucket: { limits: [{ kind: 'tokenBucket', capacity: 5, refill: 1, interval: '1s' }], timeoutMs },
  both: { dimensions: { user: [...window], constructor: [...window] }, timeoutMs },
  audited: { limits: [{ kind: 'slidingWindow', limit: 3, window: '1h', log: 'zset' }], timeoutMs },
  devices: { limits: [{ kind: 'distinct', limit: 3, window: '1h' }], timeoutMs },
  // This limiter gets no requests. Any usage shows that another limiter's request has charged it.
  witness: { limits: [...window], timeoutMs },
}
const NAMES = ['api', 'bucket', 'both', 'audited', 'devices']

/** Endless streams. */
const LEFT_OUT = ['/v1/admin/tail', '/v1/admin/live']

interface Schema {
  readonly $ref?: string
  readonly type?: string | readonly string[]
  readonly anyOf?: readonly Schema[]
  readonly oneOf?: readonly Schema[]
  readonly enum?: readonly unknown[]
  readonly const?: unknown
  readonly properties?: Readonly<Record<string, Schema>>
  readonly required?: readonly string[]
  readonly additionalProperties?: Schema | boolean
  readonly items?: Schema
  readonly pattern?: string
  readonly minimum?: number
  readonly maximum?: number
  readonly minItems?: number
}

/** A request to send. */
interface Sent {
  readonly method: string
  readonly path: string
  readonly headers: Readonly<Record<string, string>>
  readonly body: string | undefined
}

const name = fc.constantFrom(...NAMES)
const key = fc.oneof(
  fc.string({ minLength: 1, maxLength: 20 }),
  fc.constantFrom(
    'ann',
    '*',
    '{ann}',
    '__proto__',
    'constructor',
    '../ann',
    'ann:bob',
    '\u0000',
    '~x',
    'é',
    '\u{1f600}',
  ),
)

/** Generates values that a schema allows. */
function arbitraryOf(schema: Schema, of: string): fc.Arbitrary<unknown> {
  const kinds = schema.anyOf ?? schema.oneOf
  if (kinds !== undefined) return fc.oneof(...kinds.map((kind) => arbitraryOf(kind, of)))
  if (schema.enum !== undefined) return fc.constantFrom(...schema.enum)
  if (schema.const !== undefined) return fc.constant(schema.const)
  switch (schema.type) {
    case 'string':
      if (of === 'limiter' || of === 'name') return name
      if (of === 'plan') return fc.constantFrom('big', 'small')
      return schema.pattern === undefined ? key : fc.constantFrom('10s', '1m', 'ann', 'x')
    case 'integer':
    case 'number':
      return fc.integer({
        min: schema.minimum ?? 0,
        max: Math.min(schema.maximum ?? 1000, (schema.minimum ?? 0) + 10),
      })
    case 'boolean':
      return fc.boolean()
    case 'null':
      return fc.constant(null)
    case 'array':
      return fc.array(arbitraryOf(schema.items ?? {}, of), { minLength: schema.minItems ?? 0, maxLength: 5 })
    case 'object': {
      const properties = Object.entries(schema.properties ?? {})
      if (properties.length === 0 && typeof schema.additionalProperties === 'object') {
        return fc.dictionary(
          fc.constantFrom('user', 'constructor', 'nothing'),
          arbitraryOf(schema.additionalProperties, of),
        )
      }
      return fc.record(Object.fromEntries(properties.map(([each, its]) => [each, arbitraryOf(its, each)])), {
        requiredKeys: [...(schema.required ?? [])],
      })
    }
    default:
      return fc.jsonValue()
  }
}

const hostileValue = fc.oneof(
  fc.constantFrom<unknown>(
    ...[null, true, 0, -1, 1.5, 2 ** 53, 1e308, '', '\ud800', '\u0000', '1', [], {}, [[]], [null]],
    ...['__proto__', 'constructor', 'Infinity', 'NaN', '\r\nX: 1', 'x'.repeat(70_000)],
    { length: 1e9 },
    { toString: 1, valueOf: 1 },
  ),
  fc.jsonValue(),
  fc.string({ unit: anyCharacter, maxLength: 50 }),
)

/** Changes, removes or adds something in a value. */
function mutated(value: unknown): fc.Arbitrary<unknown> {
  if (typeof value !== 'object' || value === null) return hostileValue
  const names = Object.keys(value)
  const copy = () => structuredClone(value) as Record<string, unknown>
  const more = fc
    .tuple(
      fc.oneof(fc.constantFrom('toString', 'limits', 'plan', 'requests', 'key'), fc.string()),
      hostileValue,
    )
    .map(([extra, its]) => ({ ...copy(), [extra]: its }))
  if (names.length === 0) return fc.oneof(more, hostileValue)
  const one = fc.constantFrom(...names)
  return fc.oneof(
    {
      weight: 4,
      arbitrary: fc.tuple(one, hostileValue).map(([each, its]) => Object.assign(copy(), { [each]: its })),
    },
    {
      weight: 2,
      arbitrary: one.chain((each) =>
        mutated(copy()[each]).map((its) => Object.assign(copy(), { [each]: its })),
      ),
    },
    {
      weight: 1,
      arbitrary: one.map((each) => {
        const less = copy()
        delete less[each]
        return less
      }),
    },
    { weight: 1, arbitrary: more },
    { weight: 1, arbitrary: hostileValue },
  )
}

/** Generates invalid JSON, and JSON that parsers read differently. */
const hostileText = (text: string): fc.Arbitrary<string> =>
  fc.oneof(
    fc.constantFrom(
      '',
      text.slice(0, -1),
      `${text}x`,
      `\ufeff${text}`,
      text.replace('{', '{"__proto__":{"limiter":"witness"},'),
      text.replace('{', '{"limiter":"witness","limiter":"api",'),
      text.replace('{', '{"constructor":{"prototype":{"a":1}},'),
      `${'['.repeat(3000)}${']'.repeat(3000)}`,
      '{"a":'.repeat(1000),
      text.replaceAll('"', "'"),
    ),
    fc
      .nat({ max: Math.max(0, text.length - 1) })
      .map((at) => `${text.slice(0, at)}\u0000${text.slice(at + 1)}`),
    fc.string({ unit: anyCharacter }),
  )

const hostileHeaders = fc.dictionary(
  fc.constantFrom(
    'content-type',
    'authorization',
    'origin',
    'accept',
    'x-forwarded-for',
    'x-original-url',
    'expect',
    'accept-version',
    'cookie',
    'x-slidegate-token',
  ),
  fc.oneof(
    fc.constantFrom(
      'text/plain',
      'application/json; charset=utf-16',
      'multipart/form-data',
      'null',
      '*',
      'Bearer x',
      'a'.repeat(4000),
      '1.x',
    ),
    fc.string({ maxLength: 30 }),
  ),
  { maxKeys: 2 },
)

function requestsOf(document: OpenApi): fc.Arbitrary<Sent> {
  const operations = Object.entries(document.paths).flatMap(([path, all]) =>
    LEFT_OUT.includes(path)
      ? []
      : Object.entries(all).map(([method, operation]) => ({ path, method, operation })),
  )
  const right = fc
    .constantFrom(...operations)
    .chain(({ path, method, operation }) => rightRequest(path, method, operation))
  const changed = right.chain((sent): fc.Arbitrary<Sent> => {
    const body = sent.body ?? '{}'
    return fc.oneof(
      {
        weight: 6,
        arbitrary: mutated(JSON.parse(body)).map((value) => ({ ...sent, body: JSON.stringify(value) })),
      },
      { weight: 2, arbitrary: hostileText(body).map((text) => ({ ...sent, body: text })) },
      {
        weight: 1,
        arbitrary: hostileHeaders.map((headers) => ({ ...sent, headers: { ...sent.headers, ...headers } })),
      },
      {
        weight: 1,
        arbitrary: fc
          .constantFrom('GET', 'HEAD', 'PUT', 'PATCH', 'DELETE', 'OPTIONS', 'TRACE', 'PROPFIND', 'POST')
          .map((method) => ({ ...sent, method })),
      },
      {
        weight: 1,
        arbitrary: fc
          .constantFrom(
            '/',
            '//',
            '/%00',
            '/%',
            '?a',
            '?__proto__[a]=1',
            '/..%2f',
            ';x',
            '?limiter=witness&limiter=api',
          )
          .map((more) => ({ ...sent, path: sent.path + more })),
      },
    )
  })
  return fc.oneof(right, { weight: 3, arbitrary: changed })
}

function rightRequest(
  path: string,
  method: string,
  { parameters = [], requestBody }: Operation,
): fc.Arbitrary<Sent> {
  const schema = requestBody?.content['application/json']?.schema as Schema | undefined
  const words = fc.record(
    Object.fromEntries(parameters.map((each) => [each.name, arbitraryOf(each.schema as Schema, each.name)])),
    { requiredKeys: parameters.flatMap((each) => (each.in === 'path' ? [each.name] : [])) },
  )
  return fc
    .tuple(words, schema === undefined ? fc.constant(undefined) : arbitraryOf(schema, ''))
    .map(([given, body]): Sent => {
      const query = new URLSearchParams()
      let filled = path
      for (const [word, value] of Object.entries(given)) {
        const inPath = `{${word}}`
        if (path.includes(inPath)) filled = filled.replace(inPath, encodeURIComponent(String(value)))
        else query.set(word, String(value))
      }
      return {
        method: method.toUpperCase(),
        path: query.size > 0 ? `${filled}?${query}` : filled,
        headers: body === undefined ? {} : { 'content-type': 'application/json' },
        body: body === undefined ? undefined : JSON.stringify(body),
      }
    })
}

/** Collects all strings in a body that may be keys. */
function textsIn(value: unknown, depth = 5): string[] {
  if (typeof value === 'string') return [value]
  if (typeof value !== 'object' || value === null || depth === 0) return []
  return Object.values(value).flatMap((each) => textsIn(each, depth - 1))
}

async function fuzz(service: TestService, numRuns: number): Promise<Map<number, number>> {
  // If the service doesn't respond, the property fails and prints the request.
  const agent = new Agent({ connections: 4, headersTimeout: 20_000, bodyTimeout: 20_000 })
  const document = (await service.get('/openapi.json')).body as OpenApi
  const described = new Described(document)
  const statuses = new Map<number, number>()
  let last: Sent | undefined
  const property = fc.asyncProperty(requestsOf(document), async (sent) => {
    last = sent
    let answer: Dispatcher.ResponseData
    try {
      const { method, path, headers, body } = sent
      const signal = AbortSignal.timeout(30_000)
      const to = { origin: service.httpUrl, method: method as 'GET', path, headers, body, signal }
      answer = await agent.request(to)
    } catch (error) {
      // The client refuses to send some requests.
      expect((error as { code?: string }).code, String(error)).toMatch(
        /UND_ERR_INVALID_ARG|UND_ERR_NOT_SUPPORTED/,
      )
      return
    }
    const status = answer.statusCode
    statuses.set(status, (statuses.get(status) ?? 0) + 1)
    const text = await answer.body.text()
    const type = (answer.headers['content-type'] as string | undefined) ?? null
    expect(status, text).not.toBe(500)
    const body = type?.includes('json') === true && text !== '' ? JSON.parse(text) : text
    const { method, path } = sent
    expect(described.mistakeIn({ method, path, status, type, body })).toBeUndefined()
    // A request never charges another limiter.
    const keys = new Set(['ann', ...textsIn(parsed(sent.body))])
    for (const each of Array.from(keys).slice(0, 5)) {
      if (each === '' || each.length > 100 || !each.isWellFormed()) continue
      const { remaining } = await service.service.get('witness').limiter.peek(each)
      expect(remaining).toBe(1000)
    }
  })
  try {
    await inTime(
      () => JSON.stringify(last),
      fc.assert(property, { numRuns, interruptAfterTimeLimit: 60_000 }),
    )
  } finally {
    await inTime(() => 'closing the client', agent.destroy())
  }
  return statuses
}

/** Names the step that doesn't end, because a test that times out doesn't. */
async function inTime<Result>(step: () => string, work: PromiseLike<Result>): Promise<Result> {
  const late = setTimeout(100_000, undefined, { ref: false }).then(() => {
    throw new Error(`${step()} didn't end within 100 s`)
  })
  return await Promise.race([work, late])
}

function parsed(body: string | undefined): unknown {
  try {
    return JSON.parse(body ?? 'null')
  } catch {
    return undefined
  }
}

describe('fuzzed requests to all routes', () => {
  const check = async (store: Config['store'], count: number) => {
    const failures: string[] = []
    const log = pino({ level: 'error' }, { write: (line) => void failures.push(line) })
    const service = await testService({ limiters, store, caps: { wait: '20ms' } }, log)
    onTestFinished(() => inTime(() => 'stopping the service', service[Symbol.asyncDispose]()))
    const statuses = await fuzz(service, count)
    expect(failures).toEqual([])
    // Checks that the requests were varied enough.
    for (const status of [200, 400, 404]) expect(statuses.get(status) ?? 0).toBeGreaterThan(count / 100)
    const answer = await service.post('/v1/consume', { limiter: 'api', key: 'after all' })
    expect(answer).toMatchObject({ status: 200, body: { allowed: true } })
  }

  it('get described responses, on memory', () => check({ memory: {} }, 400))

  it('get described responses, on Redis', async () => {
    const redis = await withRedis()
    onTestFinished(() => inTime(() => 'stopping Redis', redis[Symbol.asyncDispose]()))
    await check({ redis: { url: redis.url } }, 150)
  })
})
