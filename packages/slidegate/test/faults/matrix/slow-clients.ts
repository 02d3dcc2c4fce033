import type { MatrixClient } from './clients.ts'
import type { Fault } from './fault.ts'

/** The reason why a client takes longer to recover than Redis. */
export interface SlowClients {
  readonly faults: readonly string[]
  readonly clients: readonly string[]
  readonly why: string
  /** How long the client may take. */
  readonly backWithinMs: number
}

const SILENT_FOR_GOOD = ['silence']
const BACKOFF = ['kill', 'kill-kept', 'refuse', 'loading', 'sentinel-kill']

export const SLOW_CLIENTS: readonly SlowClients[] = [
  {
    faults: SILENT_FOR_GOOD,
    clients: ['ioredis-5', 'ioredis-6', 'iovalkey', 'node-redis-5', 'node-redis-6', 'glide', 'glide-set'],
    why: 'no timeout for silent connections: the operating system closes them after about 15 minutes. Set `socketTimeout` (ioredis 5 and 6)',
    backWithinMs: Number.POSITIVE_INFINITY,
  },
  {
    faults: SILENT_FOR_GOOD,
    clients: ['node-redis-6-set'],
    why: "each command restarts node-redis's `socketTimeout`, so it never expires under traffic. `redisStore({ url })` replaces the connection; a pool uses its other connections",
    backWithinMs: Number.POSITIVE_INFINITY,
  },
  {
    faults: ['loading'],
    clients: ['ioredis-5', 'ioredis-6', 'iovalkey'],
    why: 'ioredis and iovalkey wait as long as Redis says that loading will take, up to `maxLoadingRetryTime` (10 s). The estimate is too long',
    backWithinMs: 12_000,
  },
  {
    faults: BACKOFF,
    clients: ['glide'],
    why: "GLIDE's pauses between retries start at 100 ms and double. Set `connectionBackoff`",
    backWithinMs: 4000,
  },
  {
    faults: BACKOFF,
    clients: ['ioredis-5', 'ioredis-6', 'iovalkey', 'node-redis-5', 'node-redis-6'],
    why: 'pauses between retries grow to 2 s. Set `retryStrategy` or `reconnectStrategy`',
    backWithinMs: 3000,
  },
  {
    faults: ['sentinel-kill', 'sentinel-failover'],
    clients: ['node-redis-5', 'node-redis-6', 'node-redis-6-set'],
    why: "node-redis with Sentinel pauses for 1 s when a server is down. This isn't configurable",
    backWithinMs: 4000,
  },
  {
    faults: ['cluster-kill'],
    clients: ['node-redis-6'],
    why: 'a node-redis Cluster client reads the new topology 5 s after the first attempt to reconnect. Set `topologyRefreshOnReconnectionAttemptStrategy`',
    backWithinMs: 7000,
  },
]

export function slownessOf(fault: Fault, client: MatrixClient): SlowClients[] {
  return SLOW_CLIENTS.filter(
    ({ faults, clients }) => faults.includes(fault.name) && clients.includes(client.name),
  )
}
