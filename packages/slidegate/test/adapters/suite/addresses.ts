import { request } from 'node:http'
import { describe, expect, it } from 'vitest'
import type { HandlerArguments } from '../../../src/http/index.ts'
import { type AdapterUnderTest, inTurn, limitedTo, type Server, serve } from './fixture.ts'

/** Tests the default key, which is the client's address. */
export function addressSuite<Args extends HandlerArguments>(adapter: AdapterUnderTest<Args>): void {
  describe("the client's address", () => {
    const from = (server: Server, forwardedFor: string) =>
      fetch(server.url, { headers: { 'X-Forwarded-For': forwardedFor } })

    /** Returns whether each request is admitted, with one request per caller. Sends them in order from these addresses. */
    async function admitted(addresses: readonly string[]): Promise<boolean[]> {
      const server = await serve(adapter, limitedTo(1), { behindProxy: true })
      const answers = await inTurn(addresses, (address) => from(server, address))
      expect(server.errors).toEqual([])
      return answers.map(({ status }) => status === 200)
    }

    it('CVE-2026-30827: different IPv4-mapped addresses are different callers', async () => {
      expect(await admitted(['::ffff:192.0.2.1', '::ffff:192.0.2.2', '::ffff:c000:203'])).toEqual([
        true,
        true,
        true,
      ])
    })

    it('CVE-2026-30827: an IPv4-mapped address is the same caller as its IPv4 address', async () => {
      const spellings = ['192.0.2.1', '::ffff:192.0.2.1', '::ffff:c000:201', '0:0:0:0:0:FFFF:C000:0201']
      expect(await admitted(spellings)).toEqual([true, false, false, false])
    })

    it('CVE-2026-45364: IPv6 addresses within a /64 network are one caller', async () => {
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

    it("CVE-2026-27700: the caller's own leftmost entry in X-Forwarded-For has no effect", async () => {
      const server = await serve(adapter, limitedTo(1), { behindProxy: true })
      const answers = await inTurn(
        ['6.6.6.1, 192.0.2.1', '6.6.6.2, 192.0.2.1', '6.6.6.1, 192.0.2.2'],
        (chain) => from(server, chain),
      )
      expect(answers.map(({ status }) => status)).toEqual([200, 429, 200])
    })

    it('CVE-2026-27700: without a proxy, X-Forwarded-For has no effect', async () => {
      const server = await serve(adapter, limitedTo(1))
      const answers = await inTurn(['192.0.2.1', '192.0.2.2'], (address) => from(server, address))
      expect(answers.map(({ status }) => status)).toEqual([200, 429])
    })

    it("CVE-2026-58044: if Node may have dropped a proxy's header, the address is unknown", async () => {
      const server = await serve(adapter, limitedTo(1), { behindProxy: true })
      const answers = await inTurn(['6.6.6.1', '6.6.6.2'], async (first) => {
        const named = (address: string) => ['X-Forwarded-For', address]
        const headers = ['Host', 'x', ...named(first), ...Array(2200).fill('a'), ...named('192.0.2.1')]
        return await new Promise((resolve, reject) => {
          const sent = request(server.url, { headers, agent: false }, (response) => {
            response.resume()
            resolve(response.statusCode)
          })
          sent.on('error', reject).end()
        })
      })
      // A patched server rejects the whole request.
      expect([
        [200, 429],
        [431, 431],
      ]).toContainEqual(answers)
    })

    it('shares one key if it is invalid', async () => {
      const unreadable = [
        'unknown',
        'not an address',
        '192.0.2.1:port',
        '0xc0.0.2.1',
        '192.0.2.001',
        '192.0.2.1',
      ]
      expect(await admitted(unreadable)).toEqual([true, false, false, false, false, true])
    })
  })
}
