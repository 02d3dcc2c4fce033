import fc from 'fast-check'
import { expect } from 'vitest'
import {
  addressKey,
  type ClientAddressOptions,
  clientAddress,
  UNKNOWN_ADDRESS,
} from '../../src/http/index.ts'
import { groups, ipv4s, spelled } from './addresses.ts'
import { fuzz } from './harness.ts'
import { mutated, nearly, texts } from './hostile.ts'
import { made } from './sense.ts'

const PROXIES = ['10.0.0.1', '10.255.255.255', '::ffff:10.1.2.3', 'fd00:1::7', 'fd00:1:0:0:0:0:0:8'] as const
const TRUSTED = ['10.0.0.0/8', 'fd00:1::/32']

const outside = fc
  .oneof(
    ipv4s,
    fc.tuple(groups, spelled).map(([address, spell]) => spell(address)),
  )
  // Addresses that the proxies trust aren't callers.
  .filter((address) => !/^10\.|^fd00:1:/.test(addressKey(address)) && addressKey(address) !== UNKNOWN_ADDRESS)

const PORTS = ['', ':80', ':65535', ':_hidden']
const port = fc.constantFrom(...PORTS)

/** How a proxy writes the address that sent it a request. */
interface Spelled {
  readonly address: string
  readonly port: string
  readonly isQuoted: boolean
  readonly more: string
}

const MORE = ['', ';proto=https', ';by=10.0.0.1;host="a,b;c=\\"d\\""', ';by=_x']
const spelledBy = (address: fc.Arbitrary<string>): fc.Arbitrary<Spelled> =>
  fc.record({ address, port, isQuoted: fc.boolean(), more: fc.constantFrom(...MORE) })

/** Formats an entry of X-Forwarded-For. Addresses have brackets if there is a port, and sometimes if not. */
function inList({ address, port, isQuoted }: Spelled): string {
  if (!address.includes(':')) return address + port
  return port !== '' || isQuoted ? `[${address}]${port}` : address
}

/** Formats an element of Forwarded. */
function inForwarded({ address, port, isQuoted, more }: Spelled): string {
  const node = address.includes(':') ? `[${address}]${port}` : address + port
  return `for=${isQuoted || /[:[]/.test(node) ? `"${node}"` : node}${more}`
}

const ATTACKS = [
  '203.0.113.99',
  'for=203.0.113.99',
  'for="203.0.113.99',
  'for="203.0.113.99, for=',
  'for="\\',
  'by="',
  '"',
  '\\',
  ',,,',
  ' , ',
  'for=203.0.113.99;for=203.0.113.98',
  'for=unknown',
  'for="_gazonk"',
  '10.0.0.1, 10.0.0.1',
  'for=10.0.0.1, for="[fd00:1::7]"',
  '203.0.113.99\r\nX-Forwarded-For: 203.0.113.98',
]
const forged = fc.oneof(fc.constantFrom(...ATTACKS), mutated(fc.constantFrom(...ATTACKS)), mutated(texts))

fuzz(
  'forwarded addresses',
  fc.record({
    forged: fc.option(fc.array(forged, { minLength: 1, maxLength: 3 }), { freq: 8, nil: undefined }),
    client: spelledBy(outside),
    proxies: fc.array(spelledBy(fc.constantFrom(...PROXIES)), { minLength: 1, maxLength: 4 }),
    isCounted: fc.boolean(),
    areLines: fc.boolean(),
    other: forged,
  }),
  ({ forged, client, proxies, isCounted, areLines, other }) => {
    // The last proxy is the peer. Each proxy reports the address that sent it the request.
    const chain = [client, ...proxies.slice(0, -1)]
    const socket = { remoteAddress: proxies.at(-1)!.address }
    const trust = isCounted ? proxies.length : TRUSTED
    const expected = addressKey(client.address)
    for (const [header, spell] of [
      ['x-forwarded-for', inList],
      ['forwarded', inForwarded],
    ] as const) {
      const lines = [...(forged ?? []), ...chain.map(spell)]
      const value = areLines ? lines : lines.join(', ')
      // Other headers must be ignored.
      const headers = { 'x-forwarded-for': other, forwarded: other, 'x-real-ip': other, [header]: value }
      const key = clientAddress({ trust, header })({ socket, headers })
      const isUnreadable = header === 'forwarded' && forged !== undefined && key === UNKNOWN_ADDRESS
      if (key !== expected && !isUnreadable) throw new Error(`${header}: expected ${expected}, got ${key}`)
    }
  },
)

const HEADERS = ['x-forwarded-for', 'forwarded', 'cf-connecting-ip', 'x-real-ip'] as const

fuzz(
  'address options',
  fc.record({
    options: nearly(
      fc.record(
        {
          trust: fc.oneof(
            fc.integer({ min: 0, max: 17 }),
            fc.array(
              mutated(
                fc.constantFrom(...TRUSTED, 'loopback', 'uniquelocal', '192.0.2.1', '0.0.0.0/0', '::/0'),
              ),
              {
                maxLength: 3,
              },
            ),
          ),
          header: fc.constantFrom(...HEADERS),
          ipv6Prefix: fc.integer({ min: 1, max: 128 }),
        },
        { requiredKeys: ['trust'] },
      ),
      ['trust', 'header', 'ipv6Prefix', '__proto__'],
    ),
    values: fc.array(forged, { minLength: 4, maxLength: 4 }),
    peer: fc.option(fc.oneof(outside, fc.constantFrom(...PROXIES), texts), { nil: undefined }),
  }),
  ({ options, values, peer }) => {
    const keyOf = made(() => clientAddress(options.make() as ClientAddressOptions))
    if (keyOf === undefined) return
    const headers = Object.fromEntries(HEADERS.map((header, i) => [header, values[i]]))
    for (const each of [headers, {}, { 'x-forwarded-for': values, forwarded: values }]) {
      const key = made(() => keyOf({ socket: { remoteAddress: peer }, headers: each }))
      if (key !== undefined) expect(key).toMatch(/^(unknown|[0-9]+(\.[0-9]+){3}|[0-9a-f:]+\/[0-9]+)$/)
    }
  },
)
