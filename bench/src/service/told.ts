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
