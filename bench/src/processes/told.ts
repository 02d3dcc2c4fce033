import type { Policy } from '../peers/peer.ts'

export const KEYS = 10_000

/** Of each process. */
export const IN_FLIGHT = 1024

/** More than is asked for. */
export const POLICY: Policy = { limit: 1_000_000, windowMs: 600_000 }

/** What a worker is told: first a server, then to ask it. */
export type Told = { readonly url: string } | { readonly side: string; readonly ms: number }

export interface WorkersLoad {
  readonly requests: number
  readonly seconds: number
}
