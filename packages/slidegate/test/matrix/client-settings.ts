/** What a limiter needs of a client that it has for itself: to be back soon, and to notice a connection that is dead. */

const CONNECT_TIMEOUT_MS = 1000
const SILENT_MS = 2000
const LONGEST_PAUSE_MS = 500

/** Until the next attempt to connect. */
function pauseMs(attempts: number): number {
  return Math.min(LONGEST_PAUSE_MS, 25 * 2 ** Math.min(attempts, 10)) * (0.5 + Math.random() / 2)
}

export const IOREDIS = {
  connectTimeout: CONNECT_TIMEOUT_MS,
  socketTimeout: SILENT_MS,
  retryStrategy: pauseMs,
  maxLoadingRetryTime: LONGEST_PAUSE_MS,
} as const

export const IOREDIS_SENTINEL = { ...IOREDIS, sentinelRetryStrategy: pauseMs } as const

export const IOREDIS_CLUSTER = { redisOptions: IOREDIS, clusterRetryStrategy: pauseMs } as const

export const NODE_REDIS = {
  pingInterval: SILENT_MS / 2,
  socket: {
    connectTimeout: CONNECT_TIMEOUT_MS,
    socketTimeout: SILENT_MS,
    reconnectStrategy: pauseMs,
  },
} as const

export const NODE_REDIS_CLUSTER = {
  defaults: NODE_REDIS,
  topologyRefreshOnReconnectionAttemptStrategy: LONGEST_PAUSE_MS,
} as const

export const GLIDE = {
  connectionBackoff: { numberOfRetries: 4, factor: 25, exponentBase: 2, jitterPercent: 50 },
} as const
