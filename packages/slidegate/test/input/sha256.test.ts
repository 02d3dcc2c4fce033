import { createHash, createHmac } from 'node:crypto'
import fc from 'fast-check'
import { expect, it } from 'vitest'
import { hmacSha256, sha256 } from '../../src/runtime/sha256.ts'

const hex = (bytes: Uint8Array) => Buffer.from(bytes).toString('hex')
const bytes = fc.uint8Array({ maxLength: 300 })

it('a text has the hash from the examples of FIPS 180-4', () => {
  expect(hex(sha256(Buffer.from('abc')))).toBe(
    'ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad',
  )
})

it('a message of any length has the same hash as in node:crypto', () => {
  fc.assert(
    fc.property(bytes, (message) => {
      expect(hex(sha256(message))).toBe(createHash('sha256').update(message).digest('hex'))
    }),
  )
  // Lengths around the ends of blocks, and the longest key.
  for (const length of [0, 1, 55, 56, 57, 63, 64, 65, 119, 120, 128, 2 ** 16]) {
    const message = Buffer.alloc(length, 0xf1)
    expect(hex(sha256(message))).toBe(createHash('sha256').update(message).digest('hex'))
  }
})

it('a key and a message of any length have the same HMAC as in node:crypto', () => {
  fc.assert(
    fc.property(bytes, bytes, (key, message) => {
      const mac = hmacSha256(key)
      const expected = createHmac('sha256', key).update(message).digest('hex')
      expect([hex(mac(message)), hex(mac(message))]).toEqual([expected, expected])
    }),
  )
})

it('changing a key afterwards has no effect', () => {
  const key = Buffer.from('a secret of some length')
  const mac = hmacSha256(key)
  const before = hex(mac(Buffer.from('k')))
  key.fill(0)
  expect(hex(mac(Buffer.from('k')))).toBe(before)
})
