// Shortens, conceals and hashes the keys that operators see.

import { createHmac, hash } from 'node:crypto'
import type { AnyKey } from 'slidegate'
import type { Service } from '../service/service.ts'

/** Longer keys are truncated, and end with a hash. */
const MAX_LENGTH = 256
const BEGINNING = 200

/** Length of a hash in base64url characters, which have 6 bits each. */
const HASH_LENGTH = 22
const ELLIPSIS = '...~'

/** Shortens long keys, so that callers can't fill memory with them. */
export function shortKey(key: string, maxLength = MAX_LENGTH): string {
  if (key.length <= maxLength) return key
  // Copies the bytes, because a substring keeps the whole string in memory.
  const digest = hash('sha256', key, 'base64url').slice(0, HASH_LENGTH)
  const length = Math.min(BEGINNING, maxLength - ELLIPSIS.length - HASH_LENGTH)
  return `${Buffer.from(key.slice(0, length)).toString()}${ELLIPSIS}${digest}`
}

/** Whether {@link shortKey} has shortened a key. */
export function isCut(key: string): boolean {
  return /^.{200}\.\.\.~[\w-]{22}$/s.test(key)
}

/** Applies a function to each key in a request. Omits dimensions without a key. */
export function mapKey(
  key: AnyKey | Partial<AnyKey>,
  change: (key: string) => string,
): string | Record<string, string> {
  if (typeof key === 'string') return change(key)
  const given = Object.entries(key).filter((entry): entry is [string, string] => typeof entry[1] === 'string')
  return Object.fromEntries(given.map(([dimension, each]) => [dimension, change(each)]))
}

/** A key, or one of the keys in a request with dimensions. */
export interface SingleKey {
  readonly key: string
  /** Only set for limiters with dimensions. */
  readonly dimension?: string | undefined
}

/** Returns a request's keys one by one. Omits dimensions without a key. */
export function keysOf(key: AnyKey | Partial<AnyKey>): SingleKey[] {
  const given = mapKey(key, (each) => each)
  if (typeof given === 'string') return [{ key: given }]
  return Object.entries(given).map(([dimension, each]) => ({ dimension, key: each }))
}

/** Returns a function that hashes a limiter's keys for Redis. Undefined if the limiter has no `hashKeys`. */
export function concealing(service: Service, limiter: string): ((key: string) => string) | undefined {
  const secret = service.has(limiter) ? service.get(limiter).declared.config.hashKeys : undefined
  if (secret === undefined) return undefined
  return (key) =>
    `~${createHmac('sha256', secret).update(`key:${key}`).digest('base64url').slice(0, HASH_LENGTH)}`
}

/** Returns whether a key is already concealed. */
export function isConcealed(key: string): boolean {
  return /^~[\w-]{22}$/.test(key)
}

/** The offset basis of FNV-1a. */
const HASH_BASIS = 0x811c9dc5

/**
 * Hashes a key to 32 bits. All processes get the same hash, so their sketches can be merged.
 *
 * Uses FNV-1a over UTF-16 units, then the finalizer of MurmurHash3. With it, each bit depends on all
 * bits of the FNV hash.
 *
 * @param basis the value to start from, such as the hash of a prefix
 */
export function keyHash(key: string, basis: number = HASH_BASIS): number {
  let hash = basis
  for (let i = 0; i < key.length; i++) hash = Math.imul(hash ^ key.charCodeAt(i), 0x01000193)
  hash = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b)
  hash = Math.imul(hash ^ (hash >>> 13), 0xc2b2ae35)
  return hash ^ (hash >>> 16)
}

/** Hashes a key in a dimension. The dimension is empty for a limiter without dimensions. */
export function hashOf(key: string, dimension: string): number {
  return dimension === '' ? keyHash(key) : keyHash(key, keyHash(dimension))
}
