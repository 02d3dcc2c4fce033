import type { Redis } from 'ioredis'

/** The limit that each limiter in a comparison enforces. */
export interface Policy {
  readonly limit: number
  readonly windowMs: number
}

/** Another package's limiter. */
export interface PeerLimiter {
  /** Makes a request of cost 1. Returns whether it was admitted. */
  decide(key: string): Promise<boolean>
  close?(): void | Promise<void>
}

interface Peer {
  readonly name: string
  /** The usual name of its algorithm. */
  readonly algorithm: string
}

/** A package that keeps its state in Redis, set up as documented. */
export interface RedisPeer extends Peer {
  /** The shortest window it supports. */
  readonly leastWindowMs?: number
  /** Whether it is too slow for most settings. */
  readonly isSlow?: boolean
  open(redis: Redis, policy: Policy): PeerLimiter | Promise<PeerLimiter>
}

/** A package that keeps its state in this process. */
export interface MemoryPeer extends Peer {
  open(policy: Policy): PeerLimiter
}
