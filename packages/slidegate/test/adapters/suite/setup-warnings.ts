import { randomUUID } from 'node:crypto'
import { describe, expect, it } from 'vitest'
import type { GuardOptions, HandlerArguments } from '../../../src/http/index.ts'
import { createLimiter } from '../../../src/index.ts'
import { warningsAbout } from '../../support/warnings.ts'
import { type AdapterUnderTest, ask, limitedTo, perMinute, serve } from './fixture.ts'

const FORWARDED = { 'x-forwarded-for': '192.0.2.1' }

/** Tests the warnings about likely mistakes in an app. */
export function setupWarningSuite<Args extends HandlerArguments>(adapter: AdapterUnderTest<Args>): void {
  describe('warnings', () => {
    it.each([FORWARDED, { forwarded: 'for=192.0.2.1' }])(
      'a header of a proxy that is not trusted causes one, with the address that is counted: %j',
      async (headers) => {
        const name = randomUUID()
        const warnings = warningsAbout(name)
        const server = await serve(adapter, limitedTo(9, { name }))
        await ask(server)
        expect(await warnings.codes()).toEqual([])
        for (let i = 0; i < 3; i++) await ask(server, headers as Record<string, string>)
        expect(await warnings.codes()).toEqual(['SLIDEGATE_UNTRUSTED_PROXY'])
        expect(warnings.all[0]!.message).toMatch(
          /no proxy is trusted, so all clients behind a proxy share the key (127\.0\.0\.1|::1\/64)\. .*address: \{ trust: n \}/,
        )
      },
    )

    it.each<[string, GuardOptions<Args>, { behindProxy?: boolean }]>([
      ['a trusted proxy', {}, { behindProxy: true }],
      ['an address that trusts none', { address: { trust: 0 } }, {}],
      ['another key', { key: () => 'ann' }, {}],
      ['warnings: false', { warnings: false }, {}],
    ])('a forwarded request causes none with %s', async (_, options, settings) => {
      const name = randomUUID()
      const warnings = warningsAbout(name)
      const server = await serve(adapter, limitedTo(9, { name, ...options }), settings)
      for (let i = 0; i < 2; i++) await ask(server, FORWARDED)
      expect(server.errors).toEqual([])
      expect(await warnings.codes()).toEqual([])
    })

    it('a limiter that charges a request twice causes one, unless calls may share a request', async () => {
      const name = randomUUID()
      const warnings = warningsAbout(name)
      const limiter = createLimiter({ name, limits: [perMinute(9)] })
      const server = await serve(adapter, [{ limiter }, { limiter }])
      for (let i = 0; i < 2; i++) await ask(server)
      expect(await warnings.codes()).toEqual(adapter.sharesRequests ? [] : ['SLIDEGATE_CHARGED_TWICE'])
    })

    it('two limiters, two keys of one and a second cost on purpose cause none', async () => {
      const name = randomUUID()
      const warnings = warningsAbout(name)
      const limiter = createLimiter({ name, limits: [perMinute(9)] })
      const key = () => 'ann'
      const server = await serve(adapter, [
        limitedTo(9, { name, key }),
        limitedTo(9, { name, key }),
        { limiter, key },
        { limiter, key: () => 'bob' },
        { limiter, key, cost: () => 2 },
      ])
      for (let i = 0; i < 2; i++) await ask(server)
      expect(server.errors).toEqual([])
      expect(await warnings.codes()).toEqual([])
    })
  })
}
