import { readFileSync } from 'node:fs'
import type { Redis } from 'ioredis'
import type { PeerLimiter, Policy, RedisPeer } from '../peers/peer.ts'

/** What the scripts answer: 1 if admitted, else 0; requests that still fit. */
export type FieldAnswer = readonly [admitted: number, remaining: number]

/** A limiter on a script of the field, one EVALSHA per request. */
export interface FieldLimiter extends PeerLimiter {
  /** Without a time it is the server's, or this process's where keys are named by it. */
  consume(key: string, nowMs?: number): Promise<FieldAnswer>
}

/** A way to count that the field writes as a script of its own. */
export interface FieldScript extends RedisPeer {
  /** What its keys begin with. */
  readonly prefix: string
  /** Where it keeps what it knows of a key. */
  keysOf(key: string, nowMs: number, windowMs: number): string[]
  /** Whether it keeps each admitted request, and so never admits too many. */
  readonly isLog: boolean
  /** `writer` tells this process from others that write to the same keys. */
  open(redis: Redis, policy: Policy, writer?: string): Promise<FieldLimiter>
}

type KeysOf = (key: string, nowMs: number, windowMs: number) => string[]

const oneKey: KeysOf = (key) => [key]
const keyOfWindow: KeysOf = (key, nowMs, windowMs) => [`${key}:${Math.floor(nowMs / windowMs)}`]
const keysOfTwoWindows: KeysOf = (key, nowMs, windowMs) => [
  ...keyOfWindow(key, nowMs, windowMs),
  ...keyOfWindow(key, nowMs - windowMs, windowMs),
]

export const FIXED_WINDOW: FieldScript = fieldScript('fixed-window', 'INCR fixed window', keyOfWindow)
export const ZSET_LOG: FieldScript = fieldScript('zset-log', 'ZSET log', oneKey)

/** Scripts of the field, as found in many a code base; written for the bench. */
export const FIELD_SCRIPTS: readonly FieldScript[] = [
  FIXED_WINDOW,
  fieldScript('two-windows', 'two-window counter', keysOfTwoWindows),
  fieldScript('gcra', 'GCRA', oneKey),
  fieldScript('hash-buckets', 'HASH of 60 buckets', oneKey),
  ZSET_LOG,
  fieldScript('streams-log', 'Streams log', oneKey),
]

function fieldScript(file: string, algorithm: string, keysOf: KeysOf): FieldScript {
  const script = readFileSync(new URL(`./field/${file}.lua`, import.meta.url), 'utf8')
  const usesOurTime = keysOf !== oneKey
  const prefix = `${file}:`
  return {
    name: algorithm,
    algorithm,
    prefix,
    keysOf: (key, nowMs, windowMs) => keysOf(prefix + key, nowMs, windowMs),
    isLog: file.endsWith('-log'),
    async open(redis, { limit, windowMs }, writer = '') {
      const sha1 = (await redis.script('LOAD', script)) as string
      let requests = 0
      const consume = (key: string, nowMs?: number) => {
        const ourMs = nowMs ?? (usesOurTime ? Date.now() : undefined)
        const keys = keysOf(prefix + key, ourMs ?? 0, windowMs)
        const unique = writer + ++requests
        const words = [...keys, limit, windowMs, unique, ourMs ?? '']
        return redis.evalsha(sha1, keys.length, ...words) as Promise<FieldAnswer>
      }
      return { consume, decide: (key) => consume(key).then(([admitted]) => admitted === 1) }
    },
  }
}
