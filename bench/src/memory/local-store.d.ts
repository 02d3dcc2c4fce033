declare module '@fastify/rate-limit/store/LocalStore.js' {
  type Answer = (error: null, result: { current: number; ttl: number }) => void

  class LocalStore {
    constructor(continueExceeding: boolean, exponentialBackoff: boolean, cache?: number)
    incr(key: string, answer: Answer, timeWindowMs: number, max: number): void
  }

  export = LocalStore
}
