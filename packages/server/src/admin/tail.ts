// Streams decisions as they happen.

import { randomUUID } from 'node:crypto'
import type { Readable } from 'node:stream'
import type { AnyKey, Decision } from 'slidegate'
import type { Processes } from '../service/instance.ts'
import type { TailDecision } from './api-types.ts'
import { type EventStreams, eventOf } from './event-streams.ts'
import { mapKey, shortKey } from './keys.ts'

/** Selects the decisions that a reader gets. */
export interface TailFilter {
  readonly limiters: readonly string[]
  /** Only decisions on this key. For a limiter with dimensions, matches the key in any dimension. */
  readonly key?: string | undefined
  readonly denied?: boolean | undefined
}

/** A query to a process. Fetches the lines for a reader, or just keeps the reader registered. */
interface TailQuestion {
  readonly id: string
  readonly filter: TailFilter
  readonly take: boolean
  readonly end?: boolean
}

export interface TailBatch {
  readonly lines: readonly TailDecision[]
  /** The number of dropped lines. */
  readonly lost: number
}

interface Reader {
  filter: TailFilter
  lines: TailDecision[]
  lost: number
  askedAtMs: number
}

/** The maximum number of lines to buffer per reader. */
const MAX_LINES = 1000

const TAKE_EVERY_MS = 100

/** The maximum number of readers across all processes. */
const MAX_READERS = 1024

/** A reader that sends no query for this long is removed. */
const GONE_MS = 5000

const NOBODYS: TailFilter = { limiters: [] }

const NOTHING: TailBatch = { lines: [], lost: 0 }

/**
 * Streams decisions as server-sent events.
 *
 * Each process buffers decisions for each reader, and only counts those that don't fit. Requests never wait
 * for a reader. If there are no readers, nothing is buffered.
 */
export class Tail {
  readonly #processes: Processes
  readonly #streams: EventStreams
  readonly #now: () => number
  readonly #readers = new Map<string, Reader>()

  /** @param now a monotonic clock, in milliseconds */
  constructor(processes: Processes, streams: EventStreams, now: () => number = () => performance.now()) {
    this.#processes = processes
    this.#streams = streams
    this.#now = now
    processes.answer('tail', (query) => this.#answer(query as TailQuestion))
  }

  /** The number of readers across all processes. */
  get readers(): number {
    return this.#readers.size
  }

  decided(limiter: string, key: AnyKey, decision: Decision): void {
    if (this.#readers.size === 0) return
    let line: TailDecision | undefined
    for (const [id, reader] of this.#readers) {
      if (this.#isGone(reader)) this.#readers.delete(id)
      else if (wants(reader.filter, limiter, key, decision)) {
        line ??= lineOf(limiter, key, decision)
        if (reader.lines.length === MAX_LINES) reader.lost++
        else reader.lines.push(line)
      }
    }
  }

  /**
   * Streams the decisions from all processes as server-sent events, until the stream is destroyed.
   *
   * @param filter called at each poll, because limiters come and go. If it throws, the stream ends
   * @throws {ServiceError} `too_many_readers`
   */
  open(filter: () => TailFilter): Readable {
    const id = randomUUID()
    const ask = async (what: Partial<TailQuestion>) => {
      const query: TailQuestion = { id, filter: what.end ? NOBODYS : filter(), take: false, ...what }
      return (await this.#processes.ask('tail', query)) as readonly TailBatch[]
    }
    return this.#streams.open({
      everyMs: TAKE_EVERY_MS,
      next: async (take) => eventsOf(await ask({ take })),
      end: () => void ask({ end: true }).catch(() => {}),
    })
  }

  #answer({ id, filter, take, end }: TailQuestion): TailBatch {
    if (end) {
      this.#readers.delete(id)
      return NOTHING
    }
    const askedAtMs = this.#now()
    if (!this.#readers.has(id) && this.#readers.size >= MAX_READERS && !this.#forgetGone()) return NOTHING
    const reader = this.#readers.get(id) ?? { filter, lines: [], lost: 0, askedAtMs }
    this.#readers.set(id, Object.assign(reader, { filter, askedAtMs }))
    if (!take) return NOTHING
    const { lines, lost } = reader
    Object.assign(reader, { lines: [], lost: 0 })
    return { lines, lost }
  }

  #isGone({ askedAtMs }: Reader): boolean {
    return this.#now() - askedAtMs > GONE_MS
  }

  /**
   * Removes readers that are gone. Otherwise, such readers would stay until the next decision. Returns whether there
   * is room for another reader.
   */
  #forgetGone(): boolean {
    for (const [id, reader] of this.#readers) if (this.#isGone(reader)) this.#readers.delete(id)
    return this.#readers.size < MAX_READERS
  }
}

function wants(
  { limiters, key, denied }: TailFilter,
  limiter: string,
  of: AnyKey,
  decision: Decision,
): boolean {
  if (denied === true && decision.allowed) return false
  if (!limiters.includes(limiter)) return false
  return key === undefined || (typeof of === 'string' ? of === key : Object.values(of).includes(key))
}

function lineOf(limiter: string, key: AnyKey, decision: Decision): TailDecision {
  const { atMs, allowed, cost, deniedBy, source, remaining, retryAfterMs, blockedMs, limits } = decision
  const shadowDeniedBy = limits.filter((limit) => limit.shadow && !limit.allowed).map(({ name }) => name)
  return {
    ...{ atMs, limiter, key: mapKey(key, shortKey), allowed, cost, deniedBy, source },
    remaining: Number.isFinite(remaining) ? remaining : null,
    retryAfterMs: Number.isFinite(retryAfterMs) ? retryAfterMs : null,
    ...(blockedMs !== undefined && { blockedMs }),
    ...(shadowDeniedBy.length > 0 && { shadowDeniedBy }),
  }
}

/** Formats batches as events: `decision`, and `lost` with the number of dropped decisions. */
function eventsOf(taken: readonly TailBatch[]): string {
  const lines = taken.flatMap((each) => each.lines)
  if (taken.length > 1) lines.sort((a, b) => a.atMs - b.atMs)
  const lost = taken.reduce((sum, each) => sum + each.lost, 0)
  const events = lines.map((line) => eventOf('decision', line))
  if (lost > 0) events.push(eventOf('lost', { lost }))
  return events.join('')
}
