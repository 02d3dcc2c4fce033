import { isIPv4, isIPv6 } from 'node:net'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { addressKey, UNKNOWN_ADDRESS } from '../../src/http/caller-keys.ts'

describe('the key of an IPv4 address', () => {
  it('equals the address', () => {
    expect(addressKey('203.0.113.7')).toBe('203.0.113.7')
  })

  it.each(['::ffff:203.0.113.7', '::ffff:cb00:7107', '::FFFF:CB00:7107', '0:0:0:0:0:ffff:203.0.113.7'])(
    'stays the same for an IPv4-mapped address: %s',
    (spelling) => {
      expect(addressKey(spelling)).toBe('203.0.113.7')
    },
  )

  it.each([
    '64:ff9b::203.0.113.7',
    '64:ff9b::cb00:7107',
    '64:FF9B:0:0:0:0:CB00:7107',
    '64:ff9b::cb00:7107%eth0',
  ])('equals the IPv4 address of a NAT64 address: %s', (spelling) => {
    expect(addressKey(spelling)).toBe('203.0.113.7')
  })

  it.each([
    ['a private address behind NAT64', '64:ff9b::10.0.0.1', '64:ff9b::a00:1/128'],
    ['a loopback address behind NAT64', '64:ff9b::127.0.0.1', '64:ff9b::7f00:1/128'],
    ['a carrier-grade NAT address behind NAT64', '64:ff9b::100.64.0.1', '64:ff9b::6440:1/128'],
    ['an address with another NAT64 prefix', '64:ff9b:1::203.0.113.7', '64:ff9b:1::cb00:7107/128'],
    ['an address next to the NAT64 prefix', '64:ff9b::1:0:203.0.113.7', '64:ff9b::1:0:cb00:7107/128'],
  ])('stays an IPv6 key for %s', (_, address, key) => {
    expect(addressKey(address, { ipv6Prefix: 128 })).toBe(key)
  })

  it.each(['203.0.113', '0xcb.0.113.7', '203.0.113.007', '3405803783', '203.0.113.256', '203.0.113.7%eth0'])(
    'rejects the invalid spelling %s',
    (text) => {
      expect(addressKey(text)).toBe(UNKNOWN_ADDRESS)
    },
  )
})

describe('the key of an IPv6 address', () => {
  it('equals its /64 network', () => {
    expect(addressKey('2001:db8:1:2:3:4:5:6')).toBe('2001:db8:1:2::/64')
  })

  it('equals its network of `ipv6Prefix` bits', () => {
    expect(addressKey('2001:db8:1:2ff:3:4:5:6', { ipv6Prefix: 56 })).toBe('2001:db8:1:200::/56')
    expect(addressKey('2001:db8::1', { ipv6Prefix: 128 })).toBe('2001:db8::1/128')
  })

  it('ignores the zone id', () => {
    expect(addressKey('fe80::1%eth0.100')).toBe('fe80::/64')
  })

  it('ignores an IPv4 address in its last bits, however it is spelled', () => {
    expect(addressKey('::1.2.3.4', { ipv6Prefix: 128 })).toBe('::102:304/128')
    expect(addressKey('2001:db8::1.2.3.4')).toBe('2001:db8::/64')
  })

  it('depends only on the bits within the prefix', () => {
    const prefixes = fc.integer({ min: 1, max: 128 })
    const spellings = fc.constantFrom(full, upperCase, compressed, dotted, zoned)
    fc.assert(
      fc.property(ipv6Bytes(), prefixes, spellings, (bytes, ipv6Prefix, spell) => {
        expect(addressKey(spell(bytes), { ipv6Prefix })).toBe(expectedKey(bytes, ipv6Prefix))
      }),
      { numRuns: 2000 },
    )
  })
})

describe('text that is not an address', () => {
  it.each([
    undefined,
    '',
    'unknown',
    '_hidden',
    ' 203.0.113.7',
    '203.0.113.7:80',
    '[2001:db8::1]',
    '1::2::3',
  ])('shares one key: %s', (text) => {
    expect(addressKey(text)).toBe(UNKNOWN_ADDRESS)
  })

  it('matches the text that Node rejects', () => {
    const pieces = fc.constantFrom(
      ':',
      '::',
      '.',
      '%',
      '0',
      '1',
      '7',
      'a',
      'ffff',
      'FFFF',
      '10',
      '255',
      '256',
      '01',
      '0x1',
      ' ',
    )
    fc.assert(
      fc.property(fc.string({ unit: pieces, maxLength: 16 }), (text) => {
        const bare = text.split('%', 1)[0] ?? ''
        const readable = isIPv4(text) || isIPv6(bare)
        expect(addressKey(text) !== UNKNOWN_ADDRESS).toBe(readable)
      }),
      { numRuns: 5000 },
    )
  })
})

it.each([0, 129, 63.5, Number.NaN, '64'])('a prefix of %s bits is rejected', (ipv6Prefix) => {
  const options = { ipv6Prefix: ipv6Prefix as number }
  expect(() => addressKey('2001:db8::1', options)).toThrow(
    expect.objectContaining({ code: 'invalid_option', value: ipv6Prefix }),
  )
})

type Bytes = readonly number[]

/** Generates addresses, with runs of zeros and mapped addresses more often than at random. */
function ipv6Bytes(): fc.Arbitrary<Bytes> {
  const byte = fc.oneof(fc.constant(0), fc.integer({ min: 0, max: 255 }))
  const mapped = fc
    .array(byte, { minLength: 4, maxLength: 4 })
    .map((ipv4) => [...Array(10).fill(0), 255, 255, ...ipv4])
  return fc.oneof(
    { weight: 4, arbitrary: fc.array(byte, { minLength: 16, maxLength: 16 }) },
    { weight: 1, arbitrary: mapped },
  )
}

/** Computes the key without the tested parser. Uses BigInt for bits and the URL parser for the canonical spelling. */
function expectedKey(bytes: Bytes, prefix: number): string {
  const isMapped = bytes.slice(0, 10).every((byte) => byte === 0) && bytes[10] === 255 && bytes[11] === 255
  if (isMapped) return bytes.slice(12).join('.')
  const bits = BigInt(`0x${bytes.map((byte) => byte.toString(16).padStart(2, '0')).join('')}`)
  const hostBits = BigInt(128 - prefix)
  const network = ((bits >> hostBits) << hostBits).toString(16).padStart(32, '0')
  const spelled = network.match(/.{4}/g)!.join(':')
  return `${new URL(`http://[${spelled}]`).hostname.slice(1, -1)}/${prefix}`
}

function full(bytes: Bytes): string {
  const hex = bytes.map((byte) => byte.toString(16).padStart(2, '0')).join('')
  return hex.match(/.{4}/g)!.join(':')
}

function upperCase(bytes: Bytes): string {
  return full(bytes).toUpperCase()
}

function compressed(bytes: Bytes): string {
  return new URL(`http://[${full(bytes)}]`).hostname.slice(1, -1)
}

function dotted(bytes: Bytes): string {
  return `${full(bytes).slice(0, 30)}${bytes.slice(12).join('.')}`
}

function zoned(bytes: Bytes): string {
  return `${compressed(bytes)}%br-lan.7`
}
