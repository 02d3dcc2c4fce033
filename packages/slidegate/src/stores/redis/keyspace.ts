// Builds stored keys, and finds their buckets and slots on a Cluster.

import { randomBytes } from 'node:crypto'
import { checkThat } from '../../errors.ts'
import { kindOf, type Op } from '../../ops/table.ts'

const SLOTS = 16_384

export interface Keyspace {
  readonly buckets: number
  /** Appends a key per log, `<prefix>:{<tag>}:<limiter>:<key>:<log>`, then the keys of overrides and their index. */
  append(op: Op, keys: string[]): void
  bucketOf(op: Op): number
  /** Returns `<prefix>:{<tag>}:~<store>:<place>`. `<store>` is random, and limiter names can't contain `~`. */
  receiptKey(op: Op | undefined, place: number): string
}

/** A bucket's keys are all in one slot, so a script can reach them. */
export function keyspace(prefix: string, buckets: number): Keyspace {
  // Braces aren't allowed, because Redis would use them instead of those around the tag.
  const isPrefix = typeof prefix === 'string' && /^[A-Za-z0-9._:-]{1,128}$/.test(prefix)
  checkThat(isPrefix, 'the prefix', prefix, '1 to 128 characters from A-Z a-z 0-9 . _ : -')
  const isPower = typeof buckets === 'number' && Number.isInteger(Math.log2(buckets))
  checkThat(isPower && buckets >= 1 && buckets <= 1024, 'buckets', buckets, 'a power of two from 1 to 1024')
  const heads = tagsOf(buckets).map((tag) => `${prefix}:{${tag}}:`)
  const store = randomBytes(12).toString('base64url')
  // A service may receive a bucket number that was meant for a store with more buckets.
  const bucketIn = (op: Op) => ('bucket' in op ? op.bucket % buckets : bucketOf(op.parts[0]!.key, buckets))

  return {
    buckets,
    append(op, keys) {
      const written = kindOf(op).keys
      if (written === 'index') {
        keys.push(`${heads[bucketIn(op)]!}${op.parts[0]!.set.limiter}:~overrides`)
        return
      }
      const { parts } = op
      for (const { key, set } of parts) {
        const head = `${heads[bucketOf(key, buckets)]!}${set.limiter}:${key}:`
        for (const log of set.logs) keys.push(head + log.name)
      }
      for (const { key, set } of parts) {
        if (!set.isOverridable) continue
        const head = `${heads[bucketOf(key, buckets)]!}${set.limiter}:`
        keys.push(`${head}${key}:o`)
        if (written === 'andIndex') keys.push(`${head}~overrides`)
      }
    },
    bucketOf: bucketIn,
    receiptKey: (op, place) => `${heads[op === undefined ? 0 : bucketIn(op)]!}~${store}:${place}`,
  }
}

export function bucketOf(key: string, buckets: number): number {
  return crc16(key) % buckets
}

/** CRC-16/XMODEM of ASCII text, from which Redis Cluster computes a key's slot. */
export function crc16(text: string): number {
  let crc = 0
  for (let i = 0; i < text.length; i++) {
    crc = ((crc << 8) & 0xffff) ^ CRC_TABLE[(crc >> 8) ^ text.charCodeAt(i)]!
  }
  return crc
}

const CRC_TABLE: Uint16Array = Uint16Array.from({ length: 256 }, (_, byte) => {
  let crc = byte << 8
  for (let bit = 0; bit < 8; bit++) crc = (crc << 1) ^ (crc & 0x8000 ? 0x1021 : 0)
  return crc
})

/** Returns a tag per bucket. Each tag is the smallest number whose slot is in the bucket's share of slots. */
export function tagsOf(buckets: number): readonly string[] {
  const share = SLOTS / buckets
  return Array.from({ length: buckets }, (_, bucket) => {
    for (let tag = 0; ; tag++) {
      if (Math.floor((crc16(String(tag)) % SLOTS) / share) === bucket) return String(tag)
    }
  })
}
