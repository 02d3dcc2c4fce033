// Types for the parts of autocannon that are used here. The package itself has no types.
declare module 'autocannon' {
  interface Options {
    readonly url: string
    readonly connections: number
    /** Total number of requests. Default: unlimited. */
    readonly amount?: number
    /** Seconds. */
    readonly duration?: number
    readonly method?: 'POST'
    readonly headers?: Readonly<Record<string, string>>
    /** Requests that each connection sends, in a loop. */
    readonly requests?: readonly { readonly body: string }[]
    readonly tlsOptions?: import('node:tls').ConnectionOptions
    /** Requests in flight per connection. Default: 1. */
    readonly pipelining?: number
    /** Milliseconds between samples. A run can only stop when a sample is taken. */
    readonly sampleInt?: number
  }
  interface Result {
    readonly '2xx': number
    readonly '4xx': number
    readonly errors: number
    readonly timeouts: number
    /** Seconds. */
    readonly duration: number
    readonly requests: { readonly total: number }
    /** Milliseconds. */
    readonly latency: Readonly<Record<'p50' | 'p90' | 'p99' | 'p99_9' | 'max', number>>
    readonly statusCodeStats: Readonly<Record<string, { readonly count: number }>>
  }
  interface Instance extends Promise<Result> {
    /** Stops now, with the results so far. */
    stop(): void
  }
  function autocannon(options: Options): Instance
  export = autocannon
}
