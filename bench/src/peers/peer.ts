import type { Redis } from 'ioredis'

/** What every limiter in a comparison is asked to keep to, as far as it can. */
export interface Policy {
  readonly limit: number
  readonly windowMs: number
}

/** A limiter of others. */
export interface PeerLimiter {
  /** One request of this key, of cost 1: whether it is admitted. */
  decide(key: string): Promise<boolean>
  close?(): void | Promise<void>
}

interface Peer {
  /** As its package is called. */
  readonly name: string
  /** How it counts, in the words of the field. */
  readonly algorithm: string
}

/** A package with its state in Redis, set up as its documentation shows it. */
export interface RedisPeer extends Peer {
  /** The shortest window that it is made for. */
  readonly leastWindowMs?: number
  /** Whether each of its decisions takes so long that it is asked in few settings. */
  readonly isSlow?: boolean
  open(redis: Redis, policy: Policy): PeerLimiter | Promise<PeerLimiter>
}

/** A package with its state in this process. */
export interface MemoryPeer extends Peer {
  open(policy: Policy): PeerLimiter
}
