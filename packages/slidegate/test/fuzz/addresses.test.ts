import fc from 'fast-check'
import { expect } from 'vitest'
import { addressKey, apiKeyKey, emailKey, sessionKey, UNKNOWN_ADDRESS } from '../../src/http/index.ts'
import { storedKey } from '../../src/key.ts'
import { expectedKey, groups, ipv4s, spelled } from './addresses.ts'
import { fuzz } from './harness.ts'
import { hostile, mutated, plain, texts } from './hostile.ts'

/** Far more CPU time than any address needs. */
const LONG_MS = 2000

const prefixes = fc.oneof(fc.constantFrom(64, 48, 56, 128, 1, 127, 65, 32), fc.integer({ min: 1, max: 128 }))
const addresses = fc.tuple(groups, spelled).map(([address, spell]) => spell(address))

fuzz(
  'addresses',
  fc.record({
    address: groups,
    spellings: fc.tuple(spelled, spelled),
    text: mutated(
      fc.oneof(
        addresses,
        ipv4s,
        addresses.map((address) => `[${address}]:80`),
      ),
    ),
    prefix: prefixes,
  }),
  ({ address, spellings, text, prefix }) => {
    const [one, other] = spellings.map((spell) => addressKey(spell(address), { ipv6Prefix: prefix }))
    if (one !== other) throw new Error(`Expected one key for both, got ${one} and ${other}`)
    for (const each of [spellings[0](address), text]) {
      const key = addressKey(each, { ipv6Prefix: prefix })
      const expected = expectedKey(each, prefix)
      if (key !== expected) throw new Error(`Expected ${expected} for ${each}, got ${key}`)
    }
  },
)

const pieces = fc.constantFrom(
  '0',
  'f',
  'ffff',
  ':',
  '::',
  '.',
  '1',
  '255',
  '%',
  '0x',
  ' ',
  '[',
  ']',
  '/',
  '::ffff:',
  '1.2.3.4',
)

fuzz(
  'invalid addresses',
  fc.oneof(
    fc.tuple(fc.array(pieces, { minLength: 1, maxLength: 6 }), fc.nat(65_536)).map(([some, length]) => {
      const text = some.join('')
      return plain(text.repeat(Math.ceil(length / text.length)).slice(0, length))
    }),
    fc.array(pieces, { maxLength: 20 }).map((some) => plain(some.join(''))),
    mutated(texts).map(plain),
    hostile,
  ),
  (given) => {
    const text = given.make()
    const before = process.cpuUsage()
    const key = addressKey(text as string)
    const { user, system } = process.cpuUsage(before)
    if ((user + system) / 1000 > LONG_MS) throw new Error('an address took too long')
    expect(key).toBe(typeof text === 'string' ? expectedKey(text, 64) : UNKNOWN_ADDRESS)
  },
)

const emails = fc.constantFrom(
  'ada@example.com',
  'Ada@Example.COM',
  'ａｄａ@example.com',
  'straße@example.de',
  'İ@x.y',
)

fuzz('caller keys', fc.record({ email: mutated(emails), any: hostile }), ({ email, any }) => {
  const key = emailKey(email)
  expect(emailKey(` ${email}\t`)).toBe(email.length < 319 ? key : 'email')
  // The key contains the normalized address, so normalizing it again changes nothing.
  const address = key.slice('email:'.length)
  if (key !== 'email' && address.length <= 320) expect(emailKey(address)).toBe(key)
  for (const keyOf of [emailKey, sessionKey, apiKeyKey]) {
    for (const value of [email, any.make()]) storedKey(keyOf(value as string))
  }
})
