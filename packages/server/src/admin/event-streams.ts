// Server-sent events: slow readers lose some.

import { Readable } from 'node:stream'
import { ServiceError } from '../service/service-error.ts'
import type { Every } from './timer.ts'

/** Those who may read at a time, by one process. */
const MAX_STREAMS = 64

/** After so long something is sent, so that whoever is between does not take the silence for an end. */
const SILENT_MS = 15_000

/** One who takes nothing for so long has others have his place. */
const STUCK_MS = 60_000

/** Where events come from. */
interface EventSource {
  /** Milliseconds between two looks. */
  readonly everyMs: number
  /**
   * The text of what is to be sent now, or nothing.
   *
   * @param take whether the reader has taken what he was sent before; else nothing new will be
   */
  next(take: boolean): Promise<string>
  /** Nobody reads any more. */
  end?(): void
}

/** An event as browsers read it. */
export function eventOf(name: string, data: object): string {
  return `event: ${name}\ndata: ${JSON.stringify(data)}\n\n`
}

/** Server-sent events. A reader who is slow loses some; nobody ever waits for him. */
export class EventStreams {
  readonly #every: Every
  readonly #open = new Set<Readable>()

  constructor(every: Every) {
    this.#every = every
  }

  /**
   * Events until the stream is destroyed. What `next` throws ends it.
   *
   * @throws {ServiceError} `too_many_readers`
   */
  open({ everyMs, next, end }: EventSource): Readable {
    if (this.#open.size >= MAX_STREAMS) {
      throw new ServiceError(
        429,
        'too_many_readers',
        `${MAX_STREAMS} read already; one of them has to end first`,
      )
    }
    let isWanted = true
    let isAsking = false
    let silentMs = 0
    let stuckMs = 0
    const turn = async () => {
      if (isAsking) return
      stuckMs = isWanted ? 0 : stuckMs + everyMs
      if (stuckMs >= STUCK_MS) {
        stream.destroy()
        return
      }
      isAsking = true
      try {
        const text = await next(isWanted)
        silentMs += everyMs
        if (text !== '' || (isWanted && silentMs >= SILENT_MS)) {
          silentMs = 0
          isWanted = stream.push(text || ':\n\n')
        }
      } catch (error) {
        stream.destroy(error as Error)
      } finally {
        isAsking = false
      }
    }
    const stop = this.#every(everyMs, turn)
    const stream = new Readable({
      read: () => {
        isWanted = true
      },
      destroy: (error, done) => {
        stop()
        this.#open.delete(stream)
        end?.()
        done(error)
      },
    })
    // So that whoever reads knows that it has begun.
    stream.push(':\n\n')
    this.#open.add(stream)
    void turn()
    return stream
  }

  /** Ends them all. */
  close(): void {
    for (const stream of this.#open) {
      stream.push(null)
      stream.destroy()
    }
  }
}
