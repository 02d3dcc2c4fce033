// Streams of server-sent events that drop events for slow readers.

import { Readable } from 'node:stream'
import { ServiceError } from '../service/service-error.ts'
import type { Every } from './timer.ts'

/** The maximum number of open streams per process. */
const MAX_STREAMS = 64

/** Sends a comment after this time without events. This keeps proxies from closing the connection. */
const SILENT_MS = 15_000

/** A stream whose reader reads nothing for this long is closed, to free its slot. */
const STUCK_MS = 60_000

interface EventSource {
  /** Milliseconds between two polls. */
  readonly everyMs: number
  /**
   * Returns the text to send now, which may be empty.
   *
   * @param take whether the reader has read all previous events. If not, `next` should return no new ones
   */
  next(take: boolean): Promise<string>
  /** Called when the stream ends. */
  end?(): void
}

/** Formats a server-sent event. */
export function eventOf(name: string, data: object): string {
  return `event: ${name}\ndata: ${JSON.stringify(data)}\n\n`
}

/** Opens streams of server-sent events. Slow readers lose events, and nothing waits for them. */
export class EventStreams {
  readonly #every: Every
  readonly #open = new Set<Readable>()

  constructor(every: Every) {
    this.#every = every
  }

  /**
   * Opens a stream that lasts until it is destroyed, or `next` throws.
   *
   * @throws {ServiceError} `too_many_readers`
   */
  open({ everyMs, next, end }: EventSource): Readable {
    if (this.#open.size >= MAX_STREAMS) {
      throw new ServiceError(
        429,
        'too_many_readers',
        `${MAX_STREAMS} streams are already open; close one first`,
      )
    }
    let isWanted = true
    let isPolling = false
    let silentMs = 0
    let stuckMs = 0
    const poll = async () => {
      if (isPolling) return
      stuckMs = isWanted ? 0 : stuckMs + everyMs
      if (stuckMs >= STUCK_MS) {
        stream.destroy()
        return
      }
      isPolling = true
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
        isPolling = false
      }
    }
    const stop = this.#every(everyMs, poll)
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
    // Sends an empty comment, which shows the reader that the stream is open.
    stream.push(':\n\n')
    this.#open.add(stream)
    void poll()
    return stream
  }

  close(): void {
    for (const stream of this.#open) {
      stream.push(null)
      stream.destroy()
    }
  }
}
