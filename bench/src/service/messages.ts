import type { StoreConfig } from '../../../packages/server/src/config/schema.ts'

/** Starts the service, or queries its CPU time. */
export type ToService = { readonly store: StoreConfig; readonly limit?: number } | 'cpu seconds'

/** Ports of the service and of the constant gRPC server. */
export interface Ports {
  readonly http: number
  readonly grpc: number
  readonly constantGrpc: number
}

/** The route with the constant response. */
export const CONSTANT_PATH = '/constant'

/** Starts the service with and without metrics, or queries the CPU time. */
export type ToWatched = { readonly store: StoreConfig } | 'cpu seconds'

export interface WatchedPorts {
  readonly watched: number
  readonly unwatched: number
}
