import { describe, expect, it } from 'vitest'
import type { Config } from '../../src/config/schema.ts'
import { testService } from '../support/service.ts'

const limiters: Config['limiters'] = {
  api: { limits: [{ kind: 'slidingWindow', limit: 10, window: '1h' }] },
  both: { dimensions: { user: [{ kind: 'slidingWindow', limit: 10, window: '1h' }] } },
}

const WRONG: readonly (readonly [body: unknown, detail: string])[] = [
  [{}, 'the body has no "limiter"'],
  [[], 'the body must be an object'],
  [null, 'the body must be an object'],
  [{ limiter: 'api' }, 'the body has no "key"'],
  [{ limiter: 'api', key: 5 }, 'key must be a string or an object'],
  [{ limiter: 'api', key: '' }, 'key must NOT have fewer than 1 characters'],
  [{ limiter: 'api', key: { user: 5 } }, 'key.user must be a string or null'],
  [{ limiter: 'api', key: 'ann', cost: '1' }, 'cost must be an integer'],
  [{ limiter: 'api', key: 'ann', cost: 1.5 }, 'cost must be an integer'],
  [{ limiter: 'api', key: 'ann', cost: 0 }, 'cost must be >= 1'],
  [{ limiter: 'api', key: 'ann', cost: null }, 'cost must be an integer'],
  [{ limiter: 'api', key: 'ann', cost: 2 ** 53 }, 'cost must be <= 9007199254740991'],
  [{ limiter: 'api', key: 'ann', costs: 1 }, 'the body has the unknown field "costs"'],
  [{ limiter: 'api', key: 'ann', refundable: 'true' }, 'refundable must be true or false'],
  [{ requests: {} }, 'requests must be an array'],
  [{ requests: [{ key: 'a' }, { key: 'a', costs: 2 }] }, 'requests[1] has the unknown field "costs"'],
  [{ requests: [{ key: 'a', refundable: true }] }, 'requests[0] has the unknown field "refundable"'],
  [{ requests: [], key: 'ann' }, 'the body has the unknown field "key"'],
  [{ limiter: 'api', key: 'ann', limits: [] }, 'the body has the unknown field "limits"'],
]

const REFUSED: readonly (readonly [body: unknown, code: string, detail: string])[] = [
  [{ limiter: 'api', key: '\ud800' }, 'invalid_key', 'the key has a lone surrogate: "\\ud800"'],
  [{ limiter: 'api', key: 'x'.repeat(65_537) }, 'invalid_key', 'more than 65536 bytes'],
  [{ limiter: 'api', key: { user: 'ann' } }, 'invalid_key', 'the key is an object'],
  [{ limiter: 'both', key: { constructor: 'ann' } }, 'invalid_key', 'unknown dimension "constructor"'],
  [{ limiter: 'api', key: 'ann', requestId: 'x' }, 'invalid_request_id', 'no limit in this limiter'],
  [{ limiter: 'api', key: 'ann', value: 'x' }, 'invalid_value', 'no limit in this limiter'],
  [{ limiter: 'api', key: 'ann', value: 'x', refundable: true }, 'invalid_request', "can't be combined with"],
]

describe('a body', () => {
  it('gets an error with the allowed values if it is invalid', async () => {
    await using service = await testService({ limiters })
    for (const [body, detail] of WRONG) {
      const answer = await service.post('/v1/consume', body)
      expect([body, answer.status, answer.body.detail]).toEqual([body, 400, detail])
      expect(answer.headers.get('content-type')).toBe('application/problem+json; charset=utf-8')
    }
    for (const [body, code, detail] of REFUSED) {
      const answer = await service.post('/v1/consume', body)
      expect([answer.status, answer.body.code]).toEqual([400, code])
      expect(answer.body.detail).toContain(detail)
    }
    const unknown = await service.post('/v1/consume', { limiter: 'nobody', key: 'ann' })
    expect(unknown).toMatchObject({ status: 404, body: { code: 'unknown_limiter' } })
  })

  it('fails unless it is JSON', async () => {
    await using service = await testService({ limiters })
    const ask = async (body: string, type: string | undefined = 'application/json') => {
      const headers = type === undefined ? {} : { 'content-type': type }
      const { status, body: response } = await service.ask('/v1/consume', { method: 'POST', headers, body })
      return [status, response.code]
    }
    const right = '{"limiter":"api","key":"ann"}'
    expect(await ask(right)).toEqual([200, undefined])
    expect(await ask(right, 'application/json; charset=utf-8')).toEqual([200, undefined])
    for (const type of [
      'text/plain',
      'application/x-www-form-urlencoded',
      'application/jsonp',
      'x',
      '',
      '*/*',
    ]) {
      expect(await ask(right, type)).toEqual([415, 'unsupported_media_type'])
    }
    for (const wrong of [
      '',
      '{',
      '\0',
      '{"limiter":"api","key":"ann"',
      "{'limiter':'api'}",
      `${'['.repeat(9)}`,
    ]) {
      expect(await ask(wrong)).toEqual([400, 'invalid_json'])
    }
    for (const poison of ['{"__proto__":{"a":1}}', '{"constructor":{"prototype":{"a":1}}}']) {
      expect(await ask(poison)).toEqual([400, 'invalid_json'])
      expect(await ask(`{"limiter":"both","key":${poison}}`)).toEqual([400, 'invalid_json'])
    }
    const deep = 100_000
    expect(await ask(`${'['.repeat(deep)}${']'.repeat(deep)}`)).toEqual([400, 'invalid_request'])
    expect(await ask('{"limiter":"api","key":"ann","cost":1e400}')).toEqual([400, 'invalid_request'])
  })
})

it('rejects a wrong method and a malformed path', async () => {
  await using service = await testService({ limiters })
  expect((await service.get('/v1/consume')).status).toBe(404)
  expect((await service.get('/%zz')).body.code).toBe('invalid_request')
})
