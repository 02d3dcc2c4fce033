import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { type ClientAddressOptions, clientAddress, UNKNOWN_ADDRESS } from '../../src/http/index.ts'

/** Returns the key of a request from `peer` with these headers. */
function keyOf(
  options: ClientAddressOptions,
  peer: string | undefined,
  headers: Readonly<Record<string, string | string[]>> = {},
): string {
  return clientAddress(options)({ socket: { remoteAddress: peer }, headers })
}

const listed = (...addresses: string[]) => ({ 'x-forwarded-for': addresses.join(', ') })

describe('settings that let callers choose their key are rejected', () => {
  it.each<[unknown, RegExp]>([
    [undefined, /number of your proxies/],
    [true, /trust is true/],
    ['loopback', /array of their networks/],
    [Number.POSITIVE_INFINITY, /Infinity/],
    [17, /from 0 to 16/],
    [-1, /-1/],
    [1.5, /1\.5/],
    [() => true, /a function/],
    [['0.0.0.0/0'], /public range/],
    [['0.0.0.0/1', '128.0.0.0/1'], /public range/],
    [['10.0.0.0/7'], /public range/],
    [['::/0'], /public range/],
    [['2000::/3'], /public range/],
    [['2a00::/12'], /public range/],
    [['fc00::/6'], /public range/],
    [['::ffff:0:0/96'], /it must be a network/],
    [['::ffff:10.0.0.0/104'], /it must be a network/],
    [['64:ff9b::/96'], /it must be a network/],
    [['10.0.0.1/8'], /write 10\.0\.0\.0\/8/],
    [['2001:db8::1/64'], /write 2001:db8::\/64/],
    [['10.0.0.0/33'], /it must be a network/],
    [['2001:db8::/129'], /it must be a network/],
    [['10.0.0.0/'], /it must be a network/],
    [['10.0.0.0/8/8'], /it must be a network/],
    [['10.0.0.0/-1'], /it must be a network/],
    [['10.0.0.0/8 '], /it must be a network/],
    [['10/8'], /it must be a network/],
    [['fe80::1%eth0'], /it must be a network/],
    [['*'], /it must be a network/],
    [['toString'], /it must be a network/],
    [[''], /it must be a network/],
    [[7], /it must be a string/],
  ])('trust: %j', (trust, message) => {
    expect(() => clientAddress({ trust } as ClientAddressOptions)).toThrow(
      expect.objectContaining({ code: 'invalid_option', message: expect.stringMatching(message) }),
    )
  })

  it.each([
    ...['host', 'x-client-ip', 'fastly-client-ip', 'true-client-ip', 'x-azure-clientip'],
    ...['x-envoy-external-address', 'X-Forwarded-For', '__proto__', '', 7, null],
  ])('a header that any client can set: %j', (header) => {
    expect(() => clientAddress({ trust: 1, header } as ClientAddressOptions)).toThrow(/header is .*one of/)
  })

  it.each([0, []])('a header that no proxy is trusted to set: trust %j', (trust) => {
    expect(() => clientAddress({ trust, header: 'cf-connecting-ip' })).toThrow(/no proxy is trusted/)
  })

  it.each([0, 129, 1.5, '64', null])('a prefix of %j bits', (ipv6Prefix) => {
    expect(() => clientAddress({ trust: 0, ipv6Prefix } as ClientAddressOptions)).toThrow(/ipv6Prefix is/)
  })

  it('missing options', () => {
    expect(() => clientAddress(undefined as never)).toThrow(/the options for clientAddress/)
  })
})

describe('with a number of proxies', () => {
  it('for 0 proxies, the client is the peer, whatever its headers', () => {
    expect(keyOf({ trust: 0 }, '203.0.113.7', listed('6.6.6.6'))).toBe('203.0.113.7')
    expect(keyOf({ trust: [] }, '203.0.113.7', listed('6.6.6.6'))).toBe('203.0.113.7')
  })

  it.each([
    [1, '198.51.100.3'],
    [2, '198.51.100.2'],
    [3, '198.51.100.1'],
    // The header has only three addresses.
    [4, '198.51.100.1'],
    [16, '198.51.100.1'],
  ])('for %i proxies, that many addresses are skipped', (trust, key) => {
    expect(keyOf({ trust }, '10.0.0.1', listed('198.51.100.1', '198.51.100.2', '198.51.100.3'))).toBe(key)
  })

  it("the addresses of proxies don't matter, only their number", () => {
    expect(keyOf({ trust: 2 }, '10.0.0.1', listed('198.51.100.1', 'unknown'))).toBe('198.51.100.1')
  })

  it('a Unix socket works, although it has no peer address', () => {
    expect(keyOf({ trust: 1 }, undefined, listed('198.51.100.1'))).toBe('198.51.100.1')
    expect(keyOf({ trust: 1 }, undefined)).toBe(UNKNOWN_ADDRESS)
  })
})

describe("with the proxies' networks, the client is", () => {
  const trust = ['10.0.0.0/8', '2001:db8:ffff::/48', '192.0.2.1']

  it.each([
    ['the peer, if it is not a proxy', '203.0.113.7', listed('6.6.6.6'), '203.0.113.7'],
    ['the address that a proxy added', '10.0.0.1', listed('6.6.6.6', '198.51.100.1'), '198.51.100.1'],
    [
      'the address before two proxies',
      '10.0.0.1',
      listed('6.6.6.6', '198.51.100.1', '192.0.2.1'),
      '198.51.100.1',
    ],
    ['the address that an IPv6 proxy added', '2001:db8:ffff::5', listed('2001:db8:1::9'), '2001:db8:1::/64'],
    [
      'the address that a proxy behind NAT64 added',
      '64:ff9b::192.0.2.1',
      listed('198.51.100.1'),
      '198.51.100.1',
    ],
    ['the IPv4 address of a NAT64 client', '10.0.0.1', listed('64:ff9b::198.51.100.1'), '198.51.100.1'],
    [
      'the NAT64 address itself, if it embeds a private address',
      '64:ff9b::10.0.0.1',
      listed('198.51.100.1'),
      '64:ff9b::/64',
    ],
    [
      'the address that an IPv4-mapped proxy added',
      '::ffff:10.0.0.1',
      listed('198.51.100.1'),
      '198.51.100.1',
    ],
    [
      'the address before a proxy with a port',
      '10.0.0.1',
      listed('198.51.100.1', '10.0.0.2:8080'),
      '198.51.100.1',
    ],
    ['the proxy itself, if the header is missing', '10.0.0.1', {}, '10.0.0.1'],
    ['the farthest address, if all are proxies', '10.0.0.1', listed('10.0.0.3', '10.0.0.2'), '10.0.0.3'],
    ['unknown, if the address is invalid', '10.0.0.1', listed('198.51.100.1', 'unknown'), UNKNOWN_ADDRESS],
    ['unknown, if the address is empty', '10.0.0.1', listed('198.51.100.1', ''), UNKNOWN_ADDRESS],
    ['unknown, if there is no peer', undefined, listed('198.51.100.1'), UNKNOWN_ADDRESS],
  ])('%s', (_, peer, headers, key) => {
    expect(keyOf({ trust }, peer, headers)).toBe(key)
  })

  it.each(['127.0.0.9', '::1', '169.254.1.1', 'fe80::1', '10.1.1.1', '172.31.0.1', '192.168.1.1', 'fd00::1'])(
    'found behind proxies in named networks: %s',
    (peer) => {
      const names = ['loopback', 'linklocal', 'uniquelocal']
      expect(keyOf({ trust: names }, peer, listed('198.51.100.1'))).toBe('198.51.100.1')
      expect(keyOf({ trust: ['198.18.0.0/15'] }, peer, listed('198.51.100.1'))).not.toBe('198.51.100.1')
    },
  )

  it('unknown, if the chain has more than 16 proxies', () => {
    const chain = (proxies: number) => listed('198.51.100.1', ...Array<string>(proxies).fill('10.0.0.2'))
    expect(keyOf({ trust }, '10.0.0.1', chain(15))).toBe('198.51.100.1')
    expect(keyOf({ trust }, '10.0.0.1', chain(16))).toBe(UNKNOWN_ADDRESS)
  })
})

describe('in X-Forwarded-For', () => {
  it.each([
    ['203.0.113.7', '203.0.113.7'],
    ['203.0.113.7:4711', '203.0.113.7'],
    ['\t203.0.113.7 ', '203.0.113.7'],
    ['2001:db8:1:2::9', '2001:db8:1:2::/64'],
    ['[2001:db8:1:2::9]', '2001:db8:1:2::/64'],
    ['[2001:db8:1:2::9]:4711', '2001:db8:1:2::/64'],
    ['[::ffff:203.0.113.7]:4711', '203.0.113.7'],
    ['[203.0.113.7]', UNKNOWN_ADDRESS],
    ['203.0.113.7:', UNKNOWN_ADDRESS],
    ['203.0.113.7:471100', UNKNOWN_ADDRESS],
    ['[2001:db8::1', UNKNOWN_ADDRESS],
    ['"203.0.113.7"', UNKNOWN_ADDRESS],
    ['', UNKNOWN_ADDRESS],
  ])('%j is %s', (entry, key) => {
    expect(keyOf({ trust: 1 }, '10.0.0.1', { 'x-forwarded-for': `6.6.6.6,${entry}` })).toBe(key)
    expect(keyOf({ trust: 1 }, '10.0.0.1', { 'x-forwarded-for': entry })).toBe(key)
  })

  it('repeated headers are one list', () => {
    const headers = { 'x-forwarded-for': ['6.6.6.6', '198.51.100.1'] }
    expect(keyOf({ trust: 1 }, '10.0.0.1', headers)).toBe('198.51.100.1')
  })
})

describe('in Forwarded', () => {
  const options: ClientAddressOptions = { trust: 1, header: 'forwarded' }

  it.each([
    ['for=203.0.113.7', '203.0.113.7'],
    ['For="203.0.113.7:4711";proto=https;by=10.0.0.1', '203.0.113.7'],
    ['for="[2001:db8:1:2::9]:4711"', '2001:db8:1:2::/64'],
    ['for="203.0.113.7:_port"', '203.0.113.7'],
    ['for=6.6.6.6, for=203.0.113.7', '203.0.113.7'],
    ['for="6.6.6.6, for=7.7.7.7", proto=http;for=203.0.113.7', '203.0.113.7'],
    ['for=unknown', UNKNOWN_ADDRESS],
    ['for=_hidden', UNKNOWN_ADDRESS],
    ['for=6.6.6.6, proto=http', UNKNOWN_ADDRESS],
    ['for="6.6.6.6, for=203.0.113.7', UNKNOWN_ADDRESS],
    ['for=6.6.6.6,, for=203.0.113.7', UNKNOWN_ADDRESS],
    ['nonsense, for=203.0.113.7', UNKNOWN_ADDRESS],
    ['', UNKNOWN_ADDRESS],
  ])('%j is %s', (forwarded, key) => {
    expect(keyOf(options, '10.0.0.1', { forwarded })).toBe(key)
  })

  it('at most 4,096 characters are read', () => {
    const long = (length: number) => ({
      forwarded: `for=${'6'.repeat(length - 21)}, for=203.0.113.7`,
    })
    expect(long(4096).forwarded).toHaveLength(4096)
    expect(keyOf(options, '10.0.0.1', long(4096))).toBe('203.0.113.7')
    expect(keyOf(options, '10.0.0.1', long(4097))).toBe(UNKNOWN_ADDRESS)
  })

  it('no other header is read', () => {
    expect(keyOf(options, '10.0.0.1', listed('6.6.6.6'))).toBe('10.0.0.1')
    expect(keyOf({ trust: 1 }, '10.0.0.1', { forwarded: 'for=6.6.6.6' })).toBe('10.0.0.1')
  })

  it('the address before two proxies is read', () => {
    const forwarded = 'for=6.6.6.6, for=203.0.113.7, for=10.0.0.2'
    expect(keyOf({ ...options, trust: 2 }, '10.0.0.1', { forwarded })).toBe('203.0.113.7')
    expect(keyOf({ ...options, trust: ['10.0.0.0/8'] }, '10.0.0.1', { forwarded })).toBe('203.0.113.7')
  })
})

describe('in a platform header', () => {
  const options: ClientAddressOptions = { trust: ['10.0.0.0/8'], header: 'cf-connecting-ip' }

  it('the only address is the client if the peer is trusted', () => {
    const headers = { 'cf-connecting-ip': '203.0.113.7', ...listed('6.6.6.6') }
    expect(keyOf(options, '10.0.0.1', headers)).toBe('203.0.113.7')
    expect(keyOf({ ...options, trust: 3 }, '10.0.0.1', headers)).toBe('203.0.113.7')
    expect(keyOf(options, '198.51.100.1', headers)).toBe('198.51.100.1')
  })

  it.each([
    ...['cf-connecting-ip', 'do-connecting-ip', 'fly-client-ip', 'x-appengine-user-ip', 'x-azure-socketip'],
    ...['x-nf-client-connection-ip', 'x-real-ip', 'x-vercel-forwarded-for'],
  ] as const)('%s', (header) => {
    expect(keyOf({ trust: 1, header }, '10.0.0.1', { [header]: '203.0.113.7' })).toBe('203.0.113.7')
  })

  it('a list or a missing address makes the client unknown', () => {
    expect(keyOf(options, '10.0.0.1', { 'cf-connecting-ip': '6.6.6.6, 203.0.113.7' })).toBe(UNKNOWN_ADDRESS)
    expect(keyOf(options, '10.0.0.1', {})).toBe(UNKNOWN_ADDRESS)
    expect(keyOf(options, '10.0.0.1', { 'cf-connecting-ip': '' })).toBe(UNKNOWN_ADDRESS)
  })

  it('nothing is read unless the option selects the header', () => {
    const headers = { 'cf-connecting-ip': '6.6.6.6', 'x-real-ip': '6.6.6.6', ...listed('203.0.113.7') }
    expect(keyOf({ trust: 1 }, '10.0.0.1', headers)).toBe('203.0.113.7')
  })

  it('the address is the client even if it belongs to a proxy', () => {
    expect(keyOf(options, '10.0.0.1', { 'cf-connecting-ip': '10.0.0.2' })).toBe('10.0.0.2')
  })
})

it('clientAddress masks IPv6 addresses with ipv6Prefix', () => {
  expect(keyOf({ trust: 0, ipv6Prefix: 48 }, '2001:db8:1:2::9')).toBe('2001:db8:1::/48')
})

describe("anything that a caller writes before a proxy's entry", () => {
  const written = fc.oneof(
    fc.string({ unit: 'binary-ascii' }),
    fc.string({ unit: fc.constantFrom('"', '\\', ',', ';', '=', ' ', '[', ']', ':', 'f', 'for=', '1', '.') }),
    fc.constantFrom('10.0.0.1', '6.6.6.6, 10.0.0.1', 'for=10.0.0.1', 'for="', ',', 'for="\\'),
  )

  it('never changes the client in a list', () => {
    fc.assert(
      fc.property(written, (before) => {
        for (const trust of [1, ['10.0.0.0/8']]) {
          expect(keyOf({ trust }, '10.0.0.1', listed(before, '203.0.113.7'))).toBe('203.0.113.7')
        }
      }),
      { numRuns: 2000 },
    )
  })

  it('makes Forwarded unknown or never changes the client', () => {
    fc.assert(
      fc.property(written, fc.constantFrom('for=203.0.113.7', 'for="203.0.113.7:80"'), (before, added) => {
        const forwarded = `${before}, ${added};proto=https`
        const key = keyOf({ trust: ['10.0.0.0/8'], header: 'forwarded' }, '10.0.0.1', { forwarded })
        expect([UNKNOWN_ADDRESS, '203.0.113.7']).toContain(key)
      }),
      { numRuns: 2000 },
    )
  })
})
