import { createServer, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { setTimeout as delay } from 'node:timers/promises'

export interface Arrival {
  readonly atMs: number
  /** The process that sent the request, and the request's number there. */
  readonly id: string
  readonly allowed: boolean
}

/** Returns the headers that report a limit. Times are in seconds. */
export type Spelling = (
  limit: number,
  windowS: number,
  remaining: number,
  resetS: number,
) => Record<string, string>

export const SPELLINGS = {
  'draft 11': (limit, windowS, remaining, resetS) => ({
    'RateLimit-Policy': `"default";q=${limit};w=${windowS}`,
    RateLimit: `"default";r=${remaining};t=${resetS}`,
  }),
  'X-RateLimit-*': (limit, _, remaining, resetS) => ({
    'X-RateLimit-Limit': `${limit}`,
    'X-RateLimit-Remaining': `${remaining}`,
    'X-RateLimit-Reset': `${Math.ceil(Date.now() / 1000) + resetS}`,
  }),
} as const satisfies Record<string, Spelling>

export interface UpstreamOptions {
  readonly limit: number
  readonly windowMs: number
  readonly spelling: Spelling
  /** The time until it responds. */
  readonly latencyMs: () => number
}

/** Reads a clock that all processes of this machine share and that is never set. */
function machineMs(): number {
  const [seconds, nanoseconds] = process.hrtime()
  return seconds * 1000 + nanoseconds / 1e6
}

/**
 * Another service, which admits up to `limit` requests per sliding window. Requests count when they arrive, and further ones are
 * violations.
 */
export class Upstream {
  readonly arrivals: Arrival[] = []
  /** Whether the service has stopped. Later requests get a 410 and don't count. */
  isOver = false
  url = ''
  #limit: number
  readonly #options: UpstreamOptions
  readonly #server = createServer((request, response) => {
    request.resume()
    void this.#answer(`${request.headers['x-id']}`, response)
  })
  /** The arrival times of requests that count. */
  #admitted: number[] = []

  constructor(options: UpstreamOptions) {
    this.#options = options
    this.#limit = options.limit
  }

  async start(): Promise<this> {
    await new Promise<void>((resolve) => this.#server.listen(0, '127.0.0.1', resolve))
    this.url = `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}/`
    return this
  }

  async stop(): Promise<void> {
    this.#server.closeAllConnections()
    await new Promise((resolve) => this.#server.close(resolve))
  }

  /** Changes the limit. */
  set limit(limit: number) {
    this.#limit = limit
  }

  async #answer(id: string, response: ServerResponse): Promise<void> {
    if (this.isOver) {
      response.statusCode = 410
      response.end()
      return
    }
    const atMs = machineMs()
    const { windowMs, spelling, latencyMs } = this.#options
    const limit = this.#limit
    this.#admitted = this.#admitted.filter((admittedMs) => admittedMs > atMs - windowMs)
    const allowed = this.#admitted.length < limit
    if (allowed) this.#admitted.push(atMs)
    this.arrivals.push({ atMs, id, allowed })
    const remaining = Math.max(0, limit - this.#admitted.length)
    // The last arrival that has to expire before the next one is admitted.
    const inTheWay = this.#admitted[this.#admitted.length - limit] ?? this.#admitted[0] ?? atMs
    const resetS = Math.ceil((inTheWay + windowMs - atMs) / 1000)
    await delay(latencyMs())
    for (const [name, value] of Object.entries(spelling(limit, windowMs / 1000, remaining, resetS))) {
      response.setHeader(name, value)
    }
    if (!allowed) response.setHeader('Retry-After', resetS)
    response.statusCode = allowed ? 200 : 429
    response.end()
  }
}
