// The public API of slidegate/client.

export type { StoreResponse } from './bodies.ts'
export type { Fetch } from './http-transport.ts'
export { type ServedStore, type ServeStoreOptions, serveStore } from './serve-store.ts'
export { type ServiceStoreOptions, serviceStore } from './service-store.ts'
export type { Authorize } from './sets.ts'
