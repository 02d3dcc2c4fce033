import { Pool } from 'undici'

/** What became of one request. */
interface Flowed {
  readonly status: number
  // biome-ignore lint/suspicious/noExplicitAny: whatever the service has said
  readonly body: any
}

export interface FlowOptions {
  readonly url: string
  /** Where requests go once the first has said that it wants no more, as those of a balancer do. */
  readonly nextUrl?: string
  readonly path?: string
  /** Requests under way at a time. */
  readonly width: number
  /** The body of each request, by its number. */
  body(number: number): unknown
  /** Requests in all, at most. */
  readonly most: number
  answered?(flowed: Flowed): void
}

export interface Flow {
  /** No more requests are begun. */
  stop(): void
  /** Resolves when all are answered: how many were sent, and why some have no answer. */
  readonly done: Promise<{ readonly answered: number; readonly errors: readonly Error[] }>
}

/** Sends requests as fast as they are answered, each once. */
export function startFlow(options: FlowOptions): Flow {
  const { url, nextUrl, path = '/v1/consume', width, most, body, answered } = options
  const [first, next] = [url, nextUrl ?? url].map(
    (each) => new Pool(each, { connections: width, pipelining: 1 }),
  )
  let pool = first!
  const errors: Error[] = []
  let sent = 0
  let count = 0
  let isStopped = false
  const line = async (): Promise<void> => {
    while (!isStopped && sent < most) {
      const number = sent++
      try {
        const {
          statusCode,
          headers,
          body: stream,
        } = await pool.request({
          method: 'POST',
          path,
          headers: { 'content-type': 'application/json' },
          body: JSON.stringify(body(number)),
        })
        answered?.({ status: statusCode, body: await stream.json() })
        count++
        if (headers.connection === 'close') pool = next!
      } catch (error) {
        errors.push(error as Error)
        // Where nobody listens any more there is nothing to be sent.
        if ((error as NodeJS.ErrnoException).code === 'ECONNREFUSED') isStopped = true
      }
    }
  }
  const done = Promise.all(Array.from({ length: width }, line)).then(async () => {
    await Promise.all([first!.close(), next!.close()])
    return { answered: count, errors }
  })
  return {
    stop: () => {
      isStopped = true
    },
    done,
  }
}
