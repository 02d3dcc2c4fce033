// Types of autocannon, which has none: only what is used here.
declare module 'autocannon' {
  interface Options {
    readonly url: string
    readonly connections: number
    /** Requests in all; left out: as many as it gets through. */
    readonly amount?: number
    /** Seconds. */
    readonly duration?: number
    readonly method?: 'POST'
    readonly headers?: Readonly<Record<string, string>>
    /** What each connection sends, one after the other, and again. */
    readonly requests?: readonly { readonly body: string }[]
    readonly tlsOptions?: import('node:tls').ConnectionOptions
    /** Requests that a connection sends before it has an answer. Default: 1. */
    readonly pipelining?: number
    /** Milliseconds between two samples; the end is noticed at a sample. */
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
    /** Ends it now; what was measured until then is the result. */
    stop(): void
  }
  function autocannon(options: Options): Instance
  export = autocannon
}
