import { describe, expect, it } from 'vitest'
import type { GuardOptions, HandlerArguments } from '../../../src/http/index.ts'
import { type AdapterUnderTest, ask, limitedTo, rateLimitHeaders, serve } from './fixture.ts'

/** Tests the body and headers of a denial, by the request's `Accept` header. */
export function bodySuite<Args extends HandlerArguments>(adapter: AdapterUnderTest<Args>): void {
  describe('the body of a denial follows the Accept header', () => {
    const problem = {
      type: 'https://iana.org/assignments/http-problem-types#quota-exceeded',
      title: 'Request cannot be satisfied as assigned quota has been exceeded',
      status: 429,
      'violated-policies': ['per-minute'],
    }
    const json = JSON.stringify(problem)
    const page =
      '<!doctype html><html lang="en"><meta charset="utf-8"><title>Too many requests</title><h1>Too many requests</h1><p>Try again in 60 seconds.</p></html>\n'
    const text = 'Too many requests. Try again in 60 seconds.\n'
    const browser = 'text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,*/*;q=0.8'

    it.each([
      ['*/*', 'application/problem+json', json],
      ['application/problem+json', 'application/problem+json', json],
      ['application/json', 'application/json', json],
      ['application/json, text/plain, */*', 'application/json', json],
      [browser, 'text/html; charset=utf-8', page],
      ['text/plain', 'text/plain; charset=utf-8', text],
      ['text/*;q=0.5, application/json;q=0.1', 'text/html; charset=utf-8', page],
      ['text/html;q=0, text/plain', 'text/plain; charset=utf-8', text],
      ['image/png', 'application/problem+json', json],
      ['no media type at all;;;,', 'application/problem+json', json],
      [`${'text/html,'.repeat(200)}text/html`, 'application/problem+json', json],
    ])('%s', async (accept, type, body) => {
      const server = await serve(adapter, limitedTo(1))
      await ask(server)
      const response = await ask(server, { Accept: accept })
      expect([response.status, response.headers.get('Content-Type'), await response.text()]).toEqual([
        429,
        type,
        body,
      ])
    })

    it("omits the time if waiting doesn't help", async () => {
      const server = await serve(adapter, limitedTo(1, { cost: () => 2 }))
      expect(await (await ask(server, { Accept: 'text/plain' })).text()).toBe('Too many requests.\n')
    })

    it('contains no limits if `disclose` is false', async () => {
      const server = await serve(adapter, limitedTo(1, { disclose: false }))
      const [allowed, denied] = [await ask(server), await ask(server)]
      expect([allowed, denied].map(rateLimitHeaders)).toEqual([[], []])
      expect(denied.headers.has('Retry-After')).toBe(false)
      const { 'violated-policies': _, ...rest } = problem
      expect(await denied.json()).toEqual(rest)
      expect(await (await ask(server, { Accept: 'text/html' })).text()).not.toContain('Try again')
    })
  })

  describe('headers of several formats', () => {
    it.each<[string, GuardOptions<Args>['headers'], string[]]>([
      [
        'draft-6',
        'draft-6',
        ['ratelimit-limit', 'ratelimit-policy', 'ratelimit-remaining', 'ratelimit-reset'],
      ],
      [
        'draft-11 and legacy',
        ['draft-11', 'legacy'],
        ['ratelimit', 'ratelimit-policy', 'x-ratelimit-limit', 'x-ratelimit-remaining', 'x-ratelimit-reset'],
      ],
    ])('%s', async (_, headers, names) => {
      const server = await serve(adapter, limitedTo(2, { headers }))
      expect(rateLimitHeaders(await ask(server)).map(([name]) => name)).toEqual(names)
    })
  })
}
