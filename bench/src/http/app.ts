import type { Redis } from 'ioredis'

/** Starts on a free port of loopback. Its limiter counts in Redis if one is given, else in memory. */
export type App = (redis: Redis | undefined) => Promise<Served>

export interface Served {
  readonly port: number
  /** Of those that remember what they decided. */
  judge?(): Judgement
}

/** How many of the decisions were right. */
export interface Judgement {
  readonly decisions: number
  readonly right: number
}

/** Connections are kept from turn to turn, however long the others take theirs. */
export const KEEP_ALIVE_MS = 10 * 60_000

/** What every app answers. */
export const BODY = { hello: 'world' }

/** Whom the limits count: all limiters are given the same key function. */
export const USER_HEADER = 'x-user'
