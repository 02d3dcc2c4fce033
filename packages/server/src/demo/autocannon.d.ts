// The package brings no types; this is what is used of it.
declare module 'autocannon' {
  interface Options {
    readonly url: string
    readonly connections: number
    /** Requests in all. */
    readonly amount: number
    /** Requests that a connection sends before it has an answer. Default: 1. */
    readonly pipelining?: number
    /** Milliseconds between two samples; the end is noticed at a sample. */
    readonly sampleInt?: number
  }
  interface Result {
    readonly '2xx': number
    readonly '4xx': number
    readonly errors: number
  }
  function autocannon(options: Options): Promise<Result>
  export = autocannon
}
