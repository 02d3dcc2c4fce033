import type { Policy } from '../peers/peer.ts'

export const KEYS = 10_000

/** Requests in flight per process. */
export const IN_FLIGHT = 1024

/** A limit that is never reached. */
export const POLICY: Policy = { limit: 1_000_000, windowMs: 600_000 }

/** The first message has the server's URL. Later messages run a turn. */
export type ToWorker = { readonly url: string } | { readonly side: string; readonly ms: number }

export interface WorkersLoad {
  readonly requests: number
  readonly seconds: number
}
