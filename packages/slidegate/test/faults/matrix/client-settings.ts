// The settings that docs/production.md recommends, for reconnecting soon and detecting dead connections.

const CONNECT_TIMEOUT_MS = 1000
const SILENT_MS = 2000
const LONGEST_PAUSE_MS = 500

/** Returns the pause before the next attempt to connect. */
function pauseMs(attempts: number): number {
  return Math.min(LONGEST_PAUSE_MS, 25 * 2 ** Math.min(attempts, 10)) * (0.5 + Math.random() / 2)
}

export const IOREDIS = {
  connectTimeout: CONNECT_TIMEOUT_MS,
  socketTimeout: SILENT_MS,
  retryStrategy: pauseMs,
  maxLoadingRetryTime: LONGEST_PAUSE_MS,
  maxRetriesPerRequest: 0,
  autoResendUnfulfilledCommands: false,
} as const

export const IOREDIS_SENTINEL = { ...IOREDIS, sentinelRetryStrategy: pauseMs } as const

export const IOREDIS_CLUSTER = {
  redisOptions: { socketTimeout: SILENT_MS, maxLoadingRetryTime: LONGEST_PAUSE_MS },
  clusterRetryStrategy: pauseMs,
} as const

export const NODE_REDIS = {
  pingInterval: SILENT_MS,
  socket: {
    connectTimeout: CONNECT_TIMEOUT_MS,
    socketTimeout: 5000,
    reconnectStrategy: pauseMs,
  },
} as const

export const NODE_REDIS_CLUSTER = {
  defaults: NODE_REDIS,
  topologyRefreshOnReconnectionAttemptStrategy: 250,
} as const

export const GLIDE = {
  connectionBackoff: { numberOfRetries: 4, factor: 25, exponentBase: 2, jitterPercent: 50 },
} as const
