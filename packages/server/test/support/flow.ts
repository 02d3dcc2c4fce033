import { Pool } from 'undici'

/** The result of one request. */
interface Flowed {
  readonly status: number
  // biome-ignore lint/suspicious/noExplicitAny: any response of the service
  readonly body: any
}

export interface FlowOptions {
  readonly url: string
  /** The URL for requests after a response closes its connection, as with a load balancer. */
  readonly nextUrl?: string
  readonly path?: string
  /** Requests in flight. */
  readonly width: number
  /** The body of each request, by number. */
  body(number: number): unknown
  /** Maximum number of requests. */
  readonly most: number
  answered?(flowed: Flowed): void
}

export interface Flow {
  /** Starts no more requests. */
  stop(): void
  /** Resolves once all requests have a response or an error. */
  readonly done: Promise<{ readonly answered: number; readonly errors: readonly Error[] }>
}

/** Sends each request once, as fast as the service responds. */
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
        // Stops once connections are refused.
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
