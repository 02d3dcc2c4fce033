import { readFileSync } from 'node:fs'
import type { Redis } from 'ioredis'
import type { PeerLimiter, Policy, RedisPeer } from '../peers/peer.ts'

/** What the scripts answer: 1 if admitted, else 0; requests that still fit. */
type FieldAnswer = readonly [admitted: number, remaining: number]

/** A limiter on a script of the field, one EVALSHA per request. */
interface FieldLimiter extends PeerLimiter {
  /**
   * Without a time it is the server's, or this process's where keys are named by it. The name is that of the request,
   * the holder or the value, in logs that have such; without one, it is one that no other has.
   */
  consume(key: string, nowMs?: number, name?: string): Promise<FieldAnswer>
  /** Gives back what a holder has taken, where that is done so. */
  release(key: string, name: string): Promise<boolean>
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

/** As many calls may be under way. */
const RECEIPTS = 64

type KeysOf = (key: string, nowMs: number, windowMs: number) => string[]

const oneKey: KeysOf = (key) => [key]
const keyOfWindow: KeysOf = (key, nowMs, windowMs) => [`${key}:${Math.floor(nowMs / windowMs)}`]
const keysOfTwoWindows: KeysOf = (key, nowMs, windowMs) => [
  ...keyOfWindow(key, nowMs, windowMs),
  ...keyOfWindow(key, nowMs - windowMs, windowMs),
]

export const FIXED_WINDOW: FieldScript = fieldScript('fixed-window', 'INCR fixed window', keyOfWindow)
export const TWO_WINDOWS: FieldScript = fieldScript('two-windows', 'two-window counter', keysOfTwoWindows)
export const GCRA: FieldScript = fieldScript('gcra', 'GCRA', oneKey)
export const ZSET_LOG: FieldScript = fieldScript('zset-log', 'ZSET log', oneKey)
export const STREAMS_LOG: FieldScript = fieldScript('streams-log', 'Streams log', oneKey)

/** Scripts of the field that limit requests, as found in many a code base; written for the bench. */
export const FIELD_SCRIPTS: readonly FieldScript[] = [
  FIXED_WINDOW,
  TWO_WINDOWS,
  GCRA,
  fieldScript('hash-buckets', 'HASH of 60 buckets', oneKey),
  ZSET_LOG,
  STREAMS_LOG,
]

/** Those that limit something else: what is under way, and what is seen. */
export const SEMAPHORE: FieldScript = fieldScript('semaphore', 'ZSET semaphore', oneKey, true)
export const DISTINCT_VALUES: FieldScript = fieldScript('distinct-values', 'ZSET of values', oneKey, true)

/** The exact ones, wrapped so that they promise as much as ours: see field/once.lua. */
export const ONCE: Readonly<Record<'log' | 'values', FieldScript>> = {
  log: fieldScript('zset-log', 'ZSET log, charged once', oneKey, true, true),
  values: fieldScript('distinct-values', 'ZSET of values, charged once', oneKey, true, true),
}

function textOf(file: string): string {
  return readFileSync(new URL(`./field/${file}.lua`, import.meta.url), 'utf8')
}

function fieldScript(
  file: string,
  algorithm: string,
  keysOf: KeysOf,
  isLog: boolean = file.endsWith('-log'),
  isOnce = false,
): FieldScript {
  const script = isOnce ? textOf('once').replace('  --- script\n', () => textOf(file)) : textOf(file)
  const usesOurTime = keysOf !== oneKey
  const prefix = `${file}:`
  return {
    name: algorithm,
    algorithm,
    prefix,
    keysOf: (key, nowMs, windowMs) => keysOf(prefix + key, nowMs, windowMs),
    isLog,
    async open(redis, { limit, windowMs }, writer = '') {
      const sha1 = (await redis.script('LOAD', script)) as string
      let requests = 0
      const consume = (key: string, nowMs?: number, name: string = writer + ++requests) => {
        const ourMs = nowMs ?? (usesOurTime ? Date.now() : undefined)
        const keys = keysOf(prefix + key, ourMs ?? 0, windowMs)
        const words = [limit, windowMs, name, ourMs ?? '']
        if (isOnce) {
          keys.push(`receipt:${requests % RECEIPTS}`)
          words.push(`${requests++}`.padStart(17, '0'))
        }
        return redis.evalsha(sha1, keys.length, ...keys, ...words) as Promise<FieldAnswer>
      }
      return {
        consume,
        decide: (key) => consume(key).then(([admitted]) => admitted === 1),
        release: async (key, name) => (await redis.zrem(prefix + key, name)) === 1,
      }
    },
  }
}
