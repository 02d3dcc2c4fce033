import { describe, expect, it } from 'vitest'
import type { GuardOptions, HandlerArguments } from '../../../src/http/index.ts'
import { type AdapterUnderTest, inTurn, limitedTo, rateLimitHeaders, type Server, serve } from './fixture.ts'

/** Tests the `allow`, `deny` and `address` options. */
export function listSuite<Args extends HandlerArguments>(adapter: AdapterUnderTest<Args>): void {
  describe('address lists', () => {
    const address: GuardOptions<Args>['address'] = { trust: ['loopback'] }
    const from = (server: Server, forwardedFor: string, headers = {}) =>
      fetch(server.url, { headers: { 'X-Forwarded-For': forwardedFor, ...headers } })
    const statusesFrom = async (server: Server, addresses: readonly string[]) =>
      (await inTurn(addresses, (each) => from(server, each))).map(({ status }) => status)

    it('exempt clients in `allow`: no count and no headers', async () => {
      const server = await serve(adapter, limitedTo(1, { address, allow: ['10.0.0.0/8', '2001:db8::/32'] }))
      for (const friend of ['10.1.2.3', '10.1.2.3', '2001:db8:5::1', '::ffff:10.9.9.9']) {
        const response = await from(server, friend)
        expect([response.status, rateLimitHeaders(response)]).toEqual([200, []])
      }
      expect(await statusesFrom(server, ['192.0.2.1', '192.0.2.1', '11.0.0.1'])).toEqual([200, 429, 200])
    })

    it('return a 403 with a problem body for clients in `deny`, whatever other options apply', async () => {
      const options: GuardOptions<Args> = {
        ...{ address, deny: ['192.0.2.0/24', '2001:db8::1'], allow: ['192.0.2.7'], skip: () => true },
      }
      const server = await serve(adapter, limitedTo(1, options))
      for (const foe of ['192.0.2.1', '192.0.2.7', '2001:DB8:0::1', '64:ff9b::c000:201']) {
        const response = await from(server, foe)
        expect([response.status, response.headers.get('Content-Type'), rateLimitHeaders(response)]).toEqual([
          403,
          'application/problem+json',
          [],
        ])
        expect(await response.json()).toEqual({ type: 'about:blank', title: 'Forbidden', status: 403 })
        expect(response.headers.has('Retry-After')).toBe(false)
      }
      expect(await (await from(server, '192.0.2.1', { Accept: 'text/plain' })).text()).toBe('Forbidden.\n')
      expect(await statusesFrom(server, ['192.0.3.1', '2001:db8::2'])).toEqual([200, 200])
      expect(server.served()).toBe(2)
    })

    it('never contain an invalid address', async () => {
      const server = await serve(adapter, limitedTo(1, { address, allow: ['0.0.0.0/0', '::/0'] }))
      expect(await statusesFrom(server, ['nonsense', 'nonsense', '192.0.2.1'])).toEqual([200, 429, 200])
    })

    it("use the connection's peer address if no proxy is trusted, whatever its headers", async () => {
      const nobody: GuardOptions<Args>['address'] = { trust: 0 }
      const server = await serve(adapter, limitedTo(1, { address: nobody, deny: ['127.0.0.0/8', '::1'] }))
      expect(await statusesFrom(server, ['192.0.2.1'])).toEqual([403])
    })

    it('use the `address` option in every framework', async () => {
      const server = await serve(adapter, limitedTo(1, { address: { trust: ['loopback'], ipv6Prefix: 48 } }))
      const callers = ['192.0.2.1', '6.6.6.6, 192.0.2.1', '192.0.2.2', '2001:db8:0:1::1', '2001:db8:0:2::1']
      expect(await statusesFrom(server, callers)).toEqual([200, 429, 200, 200, 429])
    })

    it('use the `address` option with a platform header', async () => {
      const server = await serve(
        adapter,
        limitedTo(1, { address: { trust: ['loopback'], header: 'cf-connecting-ip' } }),
      )
      const ask = (ip: string) =>
        fetch(server.url, { headers: { 'CF-Connecting-IP': ip, 'X-Forwarded-For': '6.6.6.6' } })
      expect([(await ask('192.0.2.1')).status, (await ask('192.0.2.2')).status]).toEqual([200, 200])
      expect((await ask('192.0.2.1')).status).toBe(429)
    })
  })
}
