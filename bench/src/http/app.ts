import type { Redis } from 'ioredis'

/** Starts an app on a free loopback port. Its limiter uses Redis if a client is given, otherwise memory. */
export type App = (redis: Redis | undefined) => Promise<Served>

export interface Served {
  readonly port: number
  /** Judges the recorded decisions. Absent if the app records none. */
  judge?(): Judgement
}

/** The number of decisions, and how many of them were correct. */
export interface Judgement {
  readonly decisions: number
  readonly right: number
}

/** Longer than a round, to keep connections open between turns. */
export const KEEP_ALIVE_MS = 10 * 60_000

/** The response of every app. */
export const BODY = { hello: 'world' }

/** The header with the key. All limiters use the same key function. */
export const USER_HEADER = 'x-user'
