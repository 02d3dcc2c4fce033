// How keys are shortened, concealed and hashed for operators.

import { createHmac, hash } from 'node:crypto'
import type { AnyKey } from 'slidegate'
import type { Service } from '../service/service.ts'

/** Longer keys are kept as their beginning and a hash. */
const MAX_LENGTH = 256
const BEGINNING = 200

/** Of base64url, with 6 bits each. */
const HASH_LENGTH = 22

/** A key as it is kept and shown: as it is, unless it is so long that its callers could fill memory with it. */
export function shortKey(key: string): string {
  if (key.length <= MAX_LENGTH) return key
  // By way of bytes, since a part of a text would keep all of it in memory.
  const digest = hash('sha256', key, 'base64url').slice(0, HASH_LENGTH)
  return `${Buffer.from(key.slice(0, BEGINNING)).toString()}...~${digest}`
}

/** All keys of a request, each changed by the function. What it has none of is left out. */
export function mapKey(
  key: AnyKey | Partial<AnyKey>,
  change: (key: string) => string,
): string | Record<string, string> {
  if (typeof key === 'string') return change(key)
  const given = Object.entries(key).filter((entry): entry is [string, string] => typeof entry[1] === 'string')
  return Object.fromEntries(given.map(([dimension, each]) => [dimension, change(each)]))
}

/** How keys of a limiter with `hashKeys` are spelled wherever Redis sees them; nothing for others, whose keys are no secret to it. */
export function concealing(service: Service, limiter: string): ((key: string) => string) | undefined {
  const secret = service.has(limiter) ? service.get(limiter).declared.config.hashKeys : undefined
  if (secret === undefined) return undefined
  return (key) =>
    `~${createHmac('sha256', secret).update(`key:${key}`).digest('base64url').slice(0, HASH_LENGTH)}`
}

/** Whether a key is spelled so already. */
export function isConcealed(key: string): boolean {
  return /^~[\w-]{22}$/.test(key)
}

/** Of a text before which nothing comes. */
const HASH_BASIS = 0x811c9dc5

/**
 * 32 bits of a key, the same in all processes: sketches of several are joined by it. FNV-1a over its UTF-16 units, and the
 * finalizer of MurmurHash3, by which every bit depends on all of them.
 *
 * @param basis the hash of what comes before it
 */
export function keyHash(key: string, basis: number = HASH_BASIS): number {
  let hash = basis
  for (let i = 0; i < key.length; i++) hash = Math.imul(hash ^ key.charCodeAt(i), 0x01000193)
  hash = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b)
  hash = Math.imul(hash ^ (hash >>> 13), 0xc2b2ae35)
  return hash ^ (hash >>> 16)
}
