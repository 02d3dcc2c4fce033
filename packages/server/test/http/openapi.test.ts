// tier: system
import { Validator } from '@seriousme/openapi-schema-validator'
import { describe, expect, it } from 'vitest'
import type { Config, LimiterConfig } from '../../src/config/schema.ts'
import { Described, type OpenApi } from '../support/described.ts'
import { testService } from '../support/service.ts'

const limits: LimiterConfig['limits'] = [{ kind: 'slidingWindow', limit: 10, window: '1h' }]
const limiters: Config['limiters'] = { api: { limits } }

describe('/openapi.json', () => {
  it('validates as OpenAPI 3.1', async () => {
    await using service = await testService({ limiters })
    const { body } = await service.get('/openapi.json')
    const validator = new Validator()
    expect(await validator.validate(body)).toEqual({ valid: true })
    expect(validator.version).toBe('3.1')
    // Checks that the validator finds mistakes.
    const wrong = structuredClone(body)
    delete wrong.paths['/v1/consume'].post.responses['200'].description
    expect((await new Validator().validate(wrong)).valid).toBe(false)
  })

  it('stays the same for every configuration', async () => {
    await using one = await testService({ limiters })
    const auth: Config['auth'] = { tokens: [{ name: 'a', role: 'admin', token: 'a-token-of-an-operator' }] }
    await using other = await testService({ limiters: {}, auth, caps: { requestsPerCall: 3, wait: 2 } })
    expect((await other.get('/openapi.json')).body).toEqual((await one.get('/openapi.json')).body)
  })

  it('describes each route for decisions completely', async () => {
    await using service = await testService({ limiters })
    const document = (await service.get('/openapi.json')).body as OpenApi
    const paths = Object.keys(document.paths)
    for (const path of ['consume', 'peek', 'explain', 'reserve', 'settle', 'cancel', 'refund', 'wait'])
      expect(paths).toContain(`/v1/${path}`)
    for (const [path, operations] of Object.entries(document.paths)) {
      for (const [method, operation] of Object.entries(operations)) {
        if (operation.tags?.includes('decisions') !== true) continue
        expect(operation, `${method} ${path}`).toMatchObject({
          summary: expect.any(String),
          description: expect.stringMatching(
            /Requires the role `(check|read)` or higher\.( Without `auth\.tokens`, callers on loopback need no token\.)?$/,
          ),
          security: [{ token: [] }],
          requestBody: { content: { 'application/json': expect.anything() } },
        })
        for (const status of ['200', '400', '401', '403', '404', '413', '415', '421', '500', '503'])
          expect(Object.keys(operation.responses)).toContain(status)
      }
    }
  })

  it('contains only valid examples of requests', async () => {
    await using service = await testService({
      limiters: { ...limiters, login: { limits } },
    })
    const document = (await service.get('/openapi.json')).body as OpenApi
    const responses: string[] = []
    for (const [path, { post }] of Object.entries(document.paths)) {
      if (post?.tags?.includes('decisions') !== true) continue
      const { schema, example } = post.requestBody!.content['application/json'] as Exampled
      const kinds = schema?.anyOf?.flatMap(({ examples = [] }) => examples) ?? []
      for (const each of example === undefined ? kinds : [example]) {
        const { status } = await service.post(path, each)
        responses.push(`${path} ${status}`)
      }
    }
    expect(responses.sort()).toEqual([
      '/v1/consume 200',
      '/v1/consume 200',
      '/v1/explain 200',
      '/v1/peek 200',
      '/v1/wait 200',
    ])
  })
})

/** A media type with examples. A single example is next to the schema, several are in it. */
interface Exampled {
  readonly example?: unknown
  readonly schema?: { readonly anyOf?: readonly { readonly examples?: readonly unknown[] }[] }
}

it('the checker finds responses that differ from the description', async () => {
  await using service = await testService({ limiters })
  const document = (await service.get('/openapi.json')).body as OpenApi
  const described = new Described(document)
  const { status, body, headers } = await service.post('/v1/consume', { limiter: 'api', key: 'ann' })
  const given = { method: 'POST', path: '/v1/consume', status, type: headers.get('content-type'), body }
  expect(described.mistakeIn(given)).toBeUndefined()
  for (const wrong of [
    { status: 201 },
    { type: 'text/html' },
    { body: { ...body, more: 1 } },
    { body: { ...body, remaining: 'Infinity' } },
    { body: {} },
    { path: '/v1/nothing' },
  ])
    expect(described.mistakeIn({ ...given, ...wrong }), JSON.stringify(wrong)).toBeDefined()
})
