import { Readable } from 'node:stream'
import type { AnyKey, Decision } from 'slidegate'
import type { Peers } from '../service/peers.ts'
import { ServiceError } from '../service/service-error.ts'
import type { Every } from './every.ts'
import { mapKey, shortKey } from './key-text.ts'

/** What one who reads decisions wants to see of them. */
export interface TailFilter {
  /** Names of limiters. */
  readonly limiters: readonly string[]
  /** Of a limiter with dimensions: of any of them. */
  readonly key?: string | undefined
  readonly denied?: boolean | undefined
}

/** A decision as readers see it. */
export interface TailLine extends Pick<Decision, 'atMs' | 'allowed' | 'cost' | 'deniedBy' | 'source'> {
  readonly limiter: string
  readonly key: string | Readonly<Record<string, string>>
  /** `null` where no limit is enforced. */
  readonly remaining: number | null
  /** `null` where it will never be admitted. */
  readonly retryAfterMs: number | null
  readonly blockedMs?: number
  /** Shadow limits that had no room. */
  readonly shadowDeniedBy?: readonly string[]
}

/** What a process is asked for: its lines, or only to go on keeping them. */
interface Asked {
  readonly id: string
  readonly filter: TailFilter
  readonly take: boolean
  readonly end?: boolean
}

interface Taken {
  readonly lines: readonly TailLine[]
  /** Lines that there was no room for. */
  readonly lost: number
}

interface Reader {
  filter: TailFilter
  lines: TailLine[]
  lost: number
  askedAtMs: number
}

/** Those who may read at a time, by one process. */
const MAX_READERS = 16

/** Lines that are kept for a reader until he takes them. */
const MAX_LINES = 1000

const TAKE_EVERY_MS = 100

/** A reader whose process has not asked for so long is gone. */
const GONE_MS = 5000

/** So often something is sent, in times of taking, so that whoever is between does not take the silence for an end. */
const SILENT_TURNS = 150

/** One who takes nothing for so long, a minute in times of taking, has others have his place. */
const STUCK_TURNS = 600

const NOBODYS: TailFilter = { limiters: [] }

const NOTHING: Taken = { lines: [], lost: 0 }

/**
 * Decisions as they happen, for those who read them by server-sent events. Each process keeps for each reader what was not
 * taken yet, and counts what there was no room for: no request ever waits for a reader. While nobody reads, nothing is kept.
 */
export class Tail {
  readonly #peers: Peers
  readonly #every: Every
  readonly #now: () => number
  readonly #readers = new Map<string, Reader>()
  readonly #streams = new Set<Readable>()
  #opened = 0

  /** @param now a monotonic clock, in milliseconds */
  constructor(peers: Peers, every: Every, now: () => number = () => performance.now()) {
    this.#peers = peers
    this.#every = every
    this.#now = now
    peers.answer('tail', (asked) => this.#answer(asked as Asked))
  }

  /** How many read, by whichever process. */
  get readers(): number {
    return this.#readers.size
  }

  decided(limiter: string, key: AnyKey, decision: Decision): void {
    if (this.#readers.size === 0) return
    let line: TailLine | undefined
    for (const [id, reader] of this.#readers) {
      if (this.#now() - reader.askedAtMs > GONE_MS) this.#readers.delete(id)
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
    if (this.#streams.size >= MAX_READERS) {
      throw new ServiceError(
        429,
        'too_many_readers',
        `${MAX_READERS} read already; one of them has to end first`,
      )
    }
    const id = `${process.pid}-${++this.#opened}`
    const ask = async (what: Partial<Asked>) => {
      const asked: Asked = { id, filter: what.end ? NOBODYS : filter(), take: false, ...what }
      return (await this.#peers.ask('tail', asked)) as readonly Taken[]
    }
    let isWanted = true
    let isAsking = false
    let silentTurns = 0
    let stuckTurns = 0
    const turn = async () => {
      if (isAsking) return
      stuckTurns = isWanted ? 0 : stuckTurns + 1
      if (stuckTurns >= STUCK_TURNS) {
        stream.destroy()
        return
      }
      isAsking = true
      try {
        const text = eventsOf(await ask({ take: isWanted }))
        if (text !== '' || (isWanted && ++silentTurns >= SILENT_TURNS)) {
          silentTurns = 0
          isWanted = stream.push(text || ':\n\n')
        }
      } catch (error) {
        stream.destroy(error as Error)
      } finally {
        isAsking = false
      }
    }
    const stop = this.#every(TAKE_EVERY_MS, turn)
    const stream = new Readable({
      read: () => {
        isWanted = true
      },
      destroy: (error, done) => {
        stop()
        this.#streams.delete(stream)
        ask({ end: true }).catch(() => {})
        done(error)
      },
    })
    // So that whoever reads knows that it has begun.
    stream.push(':\n\n')
    this.#streams.add(stream)
    void turn()
    return stream
  }

  /** Ends all that is read here. */
  close(): void {
    for (const stream of this.#streams) {
      stream.push(null)
      stream.destroy()
    }
  }

  #answer({ id, filter, take, end }: Asked): Taken {
    if (end) {
      this.#readers.delete(id)
      return NOTHING
    }
    const askedAtMs = this.#now()
    const reader = this.#readers.get(id) ?? { filter, lines: [], lost: 0, askedAtMs }
    this.#readers.set(id, Object.assign(reader, { filter, askedAtMs }))
    if (!take) return NOTHING
    const { lines, lost } = reader
    Object.assign(reader, { lines: [], lost: 0 })
    return { lines, lost }
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

function lineOf(limiter: string, key: AnyKey, decision: Decision): TailLine {
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
function eventsOf(taken: readonly Taken[]): string {
  const lines = taken.flatMap((each) => each.lines)
  if (taken.length > 1) lines.sort((a, b) => a.atMs - b.atMs)
  const lost = taken.reduce((sum, each) => sum + each.lost, 0)
  const told = lines.map((line) => `event: decision\ndata: ${JSON.stringify(line)}\n\n`)
  if (lost > 0) told.push(`event: lost\ndata: ${JSON.stringify({ lost })}\n\n`)
  return told.join('')
}
