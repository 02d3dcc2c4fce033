// Decisions as they happen, for readers of the tail.

import { randomUUID } from 'node:crypto'
import type { Readable } from 'node:stream'
import type { AnyKey, Decision } from 'slidegate'
import type { Processes } from '../service/instance.ts'
import type { TailDecision } from './api-types.ts'
import { type EventStreams, eventOf } from './event-streams.ts'
import { mapKey, shortKey } from './keys.ts'

/** What one who reads decisions wants to see of them. */
export interface TailFilter {
  /** Names of limiters. */
  readonly limiters: readonly string[]
  /** Of a limiter with dimensions: of any of them. */
  readonly key?: string | undefined
  readonly denied?: boolean | undefined
}

/** What a process is asked for: its lines, or only to go on keeping them. */
interface TailQuestion {
  readonly id: string
  readonly filter: TailFilter
  readonly take: boolean
  readonly end?: boolean
}

export interface TailBatch {
  readonly lines: readonly TailDecision[]
  /** Lines that there was no room for. */
  readonly lost: number
}

interface Reader {
  filter: TailFilter
  lines: TailDecision[]
  lost: number
  askedAtMs: number
}

/** Lines that are kept for a reader until he takes them. */
const MAX_LINES = 1000

const TAKE_EVERY_MS = 100

/** Of all processes. */
const MAX_READERS = 1024

/** A reader whose process has not asked for so long is gone. */
const GONE_MS = 5000

const NOBODYS: TailFilter = { limiters: [] }

const NOTHING: TailBatch = { lines: [], lost: 0 }

/**
 * Decisions as they happen, for those who read them by server-sent events. Each process keeps for each reader what was not
 * taken yet, and counts what there was no room for: no request ever waits for a reader. While nobody reads, nothing is kept.
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
    processes.answer('tail', (asked) => this.#answer(asked as TailQuestion))
  }

  /** How many read, by whichever process. */
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
   * What happens from now on in all processes, as server-sent events, until the stream is destroyed.
   *
   * @param filter is asked again and again: limiters come and go. What it throws ends the stream
   * @throws {ServiceError} `too_many_readers`
   */
  open(filter: () => TailFilter): Readable {
    const id = randomUUID()
    const ask = async (what: Partial<TailQuestion>) => {
      const asked: TailQuestion = { id, filter: what.end ? NOBODYS : filter(), take: false, ...what }
      return (await this.#processes.ask('tail', asked)) as readonly TailBatch[]
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

  /** While nothing is decided nobody else does. */
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

/** Events as browsers read them: `decision`, and `lost` with how many there was no room for. */
function eventsOf(taken: readonly TailBatch[]): string {
  const lines = taken.flatMap((each) => each.lines)
  if (taken.length > 1) lines.sort((a, b) => a.atMs - b.atMs)
  const lost = taken.reduce((sum, each) => sum + each.lost, 0)
  const told = lines.map((line) => eventOf('decision', line))
  if (lost > 0) told.push(eventOf('lost', { lost }))
  return told.join('')
}
