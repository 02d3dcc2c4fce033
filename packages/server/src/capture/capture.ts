// Captures a sample of requests for replay.

import { createHmac } from 'node:crypto'
import { resolve } from 'node:path'
import { isDeepStrictEqual } from 'node:util'
import type { Logger } from 'pino'
import type { AnyKey, Decision } from 'slidegate'
import { keyHash } from '../admin/keys.ts'
import { RedisLink } from '../admin/redis-link.ts'
import type { CaptureConfig, StoreConfig } from '../config/schema.ts'
import { INSTANCE_SECRET } from '../service/instance.ts'
import { fits } from '../service/pattern.ts'
import { LineFile } from './line-file.ts'
import { type LineCounts, LineQueue } from './line-queue.ts'
import { LineStream } from './line-stream.ts'

/** A captured request: one JSON line. */
export interface CapturedRequest {
  /** ISO 8601, by the store's clock. */
  readonly time: string
  readonly limiter: string
  /** An HMAC of the key. For a limiter with dimensions, an HMAC of each sampled key, by dimension. */
  readonly key: string | Readonly<Record<string, string>>
  readonly cost: number
  readonly allowed: boolean
  readonly deniedBy?: readonly string[]
}

interface CaptureOptions {
  readonly config: CaptureConfig | undefined
  readonly store: StoreConfig
  /** The base folder for relative file names. */
  readonly folder: string
  readonly log: Logger
}

const DEFAULT_BYTES = 64 * 2 ** 20
const DEFAULT_LENGTH = 100_000

/** Length of a hash in base64url characters, which have 6 bits each. */
const HASH_LENGTH = 22

/** The active configuration of the capture, and the destination of its lines. */
interface Recording {
  readonly config: CaptureConfig
  readonly kept: LineFile | LineStream
  readonly queue: LineQueue
}

/** Records all requests for a sample of keys, so that they can be replayed exactly. Never delays a request. */
export class Capture {
  readonly #options: CaptureOptions
  readonly #counts: LineCounts = { written: 0, dropped: 0 }
  #recording: Recording | undefined

  constructor(options: CaptureOptions) {
    this.#options = options
    this.#recording = this.#begin(options.config)
  }

  /** Records a decision if its key is in the sample. */
  decided(limiter: string, key: AnyKey, decision: Decision): void {
    if (this.#recording === undefined) return
    const { config, queue } = this.#recording
    const { sampleRatio = 1, limiters, secret = INSTANCE_SECRET } = config
    if (limiters?.some((pattern) => fits(pattern, limiter)) === false) return
    const captured = capturedKey(key, sampleRatio, secret)
    if (captured !== undefined) queue.write(lineOf(limiter, captured, decision))
  }

  /** Counts of the lines written and dropped so far. */
  stats(): Readonly<LineCounts> {
    return { ...this.#counts }
  }

  /** Resolves when all recorded lines have been written or dropped, or after a timeout. */
  async flush(): Promise<void> {
    await this.#recording?.queue.flush()
  }

  /** The newest lines for the given limiters, in chronological order. Undefined if capturing is off. */
  async newest(
    count: number,
    isWanted: (limiter: string) => boolean,
  ): Promise<readonly string[] | undefined> {
    return this.#recording?.kept.newest(count, (line) => {
      const limiter = limiterOf(line)
      return limiter !== undefined && isWanted(limiter)
    })
  }

  reload(config: CaptureConfig | undefined): void {
    if (isDeepStrictEqual(config, this.#recording?.config)) return
    void this.close()
    this.#recording = this.#begin(config)
  }

  async close(): Promise<void> {
    const recording = this.#recording
    this.#recording = undefined
    try {
      await recording?.queue.flush()
      await recording?.kept.close()
    } catch (error) {
      // A failure must not prevent the service from stopping, or from capturing to another destination.
      this.#options.log.warn({ err: error }, "couldn't close the capture")
    }
  }

  #begin(config: CaptureConfig | undefined): Recording | undefined {
    if (config === undefined) return undefined
    const { log } = this.#options
    const kept = this.#keptBy(config)
    if (kept === undefined) {
      log.warn('capturing will start after a restart, because the configured store has changed')
      return undefined
    }
    const queue = new LineQueue(
      (lines) => kept.append(lines),
      this.#counts,
      (error) => log.warn({ err: error }, "couldn't capture requests"),
    )
    return { config, kept, queue }
  }

  #keptBy({
    file,
    maxBytes = DEFAULT_BYTES,
    maxLength = DEFAULT_LENGTH,
  }: CaptureConfig): Recording['kept'] | undefined {
    const { store, folder } = this.#options
    if (file !== undefined) return new LineFile(resolve(folder, file), { maxBytes })
    return store.redis && new LineStream(new RedisLink(store.redis, folder), maxLength)
  }
}

/** Returns hashes of a request's sampled keys, or undefined if none is in the sample. */
function capturedKey(key: AnyKey, share: number, secret: string): CapturedRequest['key'] | undefined {
  if (typeof key === 'string') return isSampled(key, share) ? hashOf(key, secret) : undefined
  const sampled = Object.entries(key).flatMap(([dimension, each]) =>
    typeof each === 'string' && isSampled(each, share) ? [[dimension, hashOf(each, secret)] as const] : [],
  )
  return sampled.length === 0 ? undefined : Object.fromEntries(sampled)
}

function hashOf(key: string, secret: string): string {
  return createHmac('sha256', secret).update(key).digest('base64url').slice(0, HASH_LENGTH)
}

function lineOf(limiter: string, key: CapturedRequest['key'], decision: Decision): string {
  const { atMs, cost, allowed, deniedBy } = decision
  const captured: CapturedRequest = {
    time: new Date(atMs).toISOString(),
    limiter,
    key,
    cost,
    allowed,
    ...(deniedBy.length > 0 && { deniedBy }),
  }
  return JSON.stringify(captured)
}

/** Returns the limiter of a line. Undefined if the line is incomplete or isn't from a capture. */
function limiterOf(line: string): string | undefined {
  try {
    const { limiter } = JSON.parse(line)
    return typeof limiter === 'string' ? limiter : undefined
  } catch {
    return undefined
  }
}

const WHOLE = 2 ** 32

/**
 * Whether a key belongs to the sample. `share` is the fraction of keys in the sample.
 *
 * All processes decide the same way, so all requests for a sampled key are captured.
 */
function isSampled(key: string, share: number): boolean {
  return share >= 1 || keyHash(key) >>> 0 < share * WHOLE
}
