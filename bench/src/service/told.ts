import type { StoreConfig } from '../../../packages/server/src/config/schema.ts'

/** What a service is told: to start, or to tell what it has taken so far. */
export type ToService = { readonly store: StoreConfig } | 'cpu seconds'

/** Where it listens, and where what it is compared with does. */
export interface Ports {
  readonly http: number
  readonly grpc: number
  readonly constantGrpc: number
}

/** Where the same HTTP server answers what it always answers. */
export const CONSTANT_PATH = '/constant'

/** What the process with a service that is watched, and one that is not, is told. */
export type ToWatched = { readonly store: StoreConfig } | 'cpu seconds'

export interface WatchedPorts {
  readonly watched: number
  readonly unwatched: number
}
