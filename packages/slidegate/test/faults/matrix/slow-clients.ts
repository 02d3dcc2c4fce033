import type { MatrixClient } from './clients.ts'
import type { Fault } from './fault.ts'

/** Why a client is not back as soon as Redis is. */
export interface SlowClients {
  readonly faults: readonly string[]
  readonly clients: readonly string[]
  readonly why: string
  /** So long it may take. */
  readonly backWithinMs: number
}

const SILENT_FOR_GOOD = ['silence']
const BACKOFF = ['kill', 'kill-kept', 'refuse', 'loading', 'sentinel-kill']

export const SLOW_CLIENTS: readonly SlowClients[] = [
  {
    faults: SILENT_FOR_GOOD,
    clients: ['ioredis-5', 'ioredis-6', 'iovalkey', 'node-redis-5', 'node-redis-6', 'glide', 'glide-set'],
    why: 'they have no timeout for a connection that is silent: the system gives it up after some 15 minutes. Set `socketTimeout` (ioredis 5 and 6)',
    backWithinMs: Number.POSITIVE_INFINITY,
  },
  {
    faults: SILENT_FOR_GOOD,
    clients: ['node-redis-6-set'],
    why: '`socketTimeout` of node-redis begins anew with each command that is sent, so it never runs out under traffic. `redisStore({ url })` notices by itself; a pool goes around the connection',
    backWithinMs: Number.POSITIVE_INFINITY,
  },
  {
    faults: ['loading'],
    clients: ['ioredis-5', 'ioredis-6', 'iovalkey'],
    why: 'ioredis and iovalkey wait for as long as Redis says that it will still be loading, which it overestimates, up to `maxLoadingRetryTime` (10 s)',
    backWithinMs: 12_000,
  },
  {
    faults: BACKOFF,
    clients: ['glide'],
    why: 'GLIDE tries again after pauses that double from 100 ms: `connectionBackoff`',
    backWithinMs: 4000,
  },
  {
    faults: BACKOFF,
    clients: ['ioredis-5', 'ioredis-6', 'iovalkey', 'node-redis-5', 'node-redis-6'],
    why: 'they try again after pauses that grow to 2 s: `retryStrategy`, `reconnectStrategy`',
    backWithinMs: 3000,
  },
  {
    faults: ['sentinel-kill', 'sentinel-failover'],
    clients: ['node-redis-5', 'node-redis-6', 'node-redis-6-set'],
    why: 'the Sentinel of node-redis rests for a second, which cannot be set, when it finds a server away',
    backWithinMs: 4000,
  },
  {
    faults: ['cluster-kill'],
    clients: ['node-redis-6'],
    why: 'the Cluster of node-redis asks for the new map 5 s after the first attempt to reconnect: `topologyRefreshOnReconnectionAttemptStrategy`',
    backWithinMs: 7000,
  },
]

export function slownessOf(fault: Fault, client: MatrixClient): SlowClients[] {
  return SLOW_CLIENTS.filter(
    ({ faults, clients }) => faults.includes(fault.name) && clients.includes(client.name),
  )
}
