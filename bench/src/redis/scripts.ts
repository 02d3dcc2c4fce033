import { readFileSync } from 'node:fs'
import type { Redis } from 'ioredis'
import type { PeerLimiter, Policy, RedisPeer } from '../peers/peer.ts'

/** The reply of a script: 1 if admitted, otherwise 0; then the remaining requests. */
type ScriptReply = readonly [admitted: number, remaining: number]

/** A limiter that runs a common script, with one EVALSHA per request. */
interface ScriptLimiter extends PeerLimiter {
  /**
   * Makes one request.
   *
   * @param nowMs default: the server's time, or this process's time if key names contain the time
   * @param name name of the request, holder or value, for logs that store names. Default: a unique name.
   */
  consume(key: string, nowMs?: number, name?: string): Promise<ScriptReply>
  /** Releases a holder's slot, for semaphores. */
  release(key: string, name: string): Promise<boolean>
}

/** A common Redis script for rate limiting. */
export interface CommonScript extends RedisPeer {
  readonly prefix: string
  /** Returns the Redis keys that store a key's state. */
  keysOf(key: string, nowMs: number, windowMs: number): string[]
  /** Whether it stores each admitted request, so that it never admits too many. */
  readonly isLog: boolean
  /** `writer`: unique per process, if several processes use the same keys. */
  open(redis: Redis, policy: Policy, writer?: string): Promise<ScriptLimiter>
}

/** Maximum number of calls in flight. */
const RECEIPTS = 64

type KeysOf = (key: string, nowMs: number, windowMs: number) => string[]

const oneKey: KeysOf = (key) => [key]
const keyOfWindow: KeysOf = (key, nowMs, windowMs) => [`${key}:${Math.floor(nowMs / windowMs)}`]
const keysOfTwoWindows: KeysOf = (key, nowMs, windowMs) => [
  ...keyOfWindow(key, nowMs, windowMs),
  ...keyOfWindow(key, nowMs - windowMs, windowMs),
]

export const FIXED_WINDOW: CommonScript = commonScript('fixed-window', 'INCR fixed window', keyOfWindow)
export const TWO_WINDOWS: CommonScript = commonScript('two-windows', 'two-window counter', keysOfTwoWindows)
export const GCRA: CommonScript = commonScript('gcra', 'GCRA', oneKey)
export const ZSET_LOG: CommonScript = commonScript('zset-log', 'ZSET log', oneKey)
export const STREAMS_LOG: CommonScript = commonScript('streams-log', 'Streams log', oneKey)

/** Common scripts that limit requests, written for the bench. */
export const COMMON_SCRIPTS: readonly CommonScript[] = [
  FIXED_WINDOW,
  TWO_WINDOWS,
  GCRA,
  commonScript('hash-buckets', 'HASH of 60 buckets', oneKey),
  ZSET_LOG,
  STREAMS_LOG,
]

/** Common scripts that limit concurrency and distinct values. */
export const SEMAPHORE: CommonScript = commonScript('semaphore', 'ZSET semaphore', oneKey, true)
export const DISTINCT_VALUES: CommonScript = commonScript('distinct-values', 'ZSET of values', oneKey, true)

/** Exact scripts, wrapped so that retried calls are charged once. See scripts/once.lua. */
export const ONCE: Readonly<Record<'log' | 'values', CommonScript>> = {
  log: commonScript('zset-log', 'ZSET log, charged once', oneKey, true, true),
  values: commonScript('distinct-values', 'ZSET of values, charged once', oneKey, true, true),
}

function textOf(file: string): string {
  return readFileSync(new URL(`./scripts/${file}.lua`, import.meta.url), 'utf8')
}

function commonScript(
  file: string,
  algorithm: string,
  keysOf: KeysOf,
  isLog: boolean = file.endsWith('-log'),
  isOnce = false,
): CommonScript {
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
        return redis.evalsha(sha1, keys.length, ...keys, ...words) as Promise<ScriptReply>
      }
      return {
        consume,
        decide: (key) => consume(key).then(([admitted]) => admitted === 1),
        release: async (key, name) => (await redis.zrem(prefix + key, name)) === 1,
      }
    },
  }
}
