// Warns about client settings that harm a limiter.

import { has, type RedisClient } from './clients.ts'

const warned = new WeakSet<object>()

/** Warns once per client. */
export function warnOfClient(client: RedisClient): void {
  if (warned.has(client)) return
  const harms = harmsOf(client).flatMap((harm) => (harm === false ? [] : `- ${harm}`))
  if (harms.length === 0) return
  warned.add(client)
  process.emitWarning(
    'The Redis client for redisStore has harmful settings. See docs/production.md#client-settings.',
    { type: 'SlidegateWarning', code: 'SLIDEGATE_CLIENT_SETTINGS', detail: harms.join('\n') },
  )
}

interface Shown {
  readonly isCluster?: boolean
  readonly options?: Settings
  /** Set by a node-redis Cluster client. */
  readonly _options?: { readonly defaults?: Settings; readonly keyPrefix?: string }
}

interface Settings {
  readonly maxRetriesPerRequest?: number | null
  readonly retryStrategy?: unknown
  readonly clusterRetryStrategy?: unknown
  readonly role?: string
  readonly keyPrefix?: string
  readonly maxRedirections?: number
  readonly retryDelayOnFailover?: number
  readonly retryDelayOnClusterDown?: number
  readonly retryDelayOnTryAgain?: number
  readonly redisOptions?: { readonly keyPrefix?: string }
  readonly enableAutoPipelining?: boolean
  readonly autoPipeliningIgnoredCommands?: readonly string[]
  /** Exists in ioredis, but not in iovalkey. */
  readonly shardedSubscribers?: boolean
  readonly readonly?: boolean
  readonly socket?: { readonly reconnectStrategy?: unknown; readonly socketTimeout?: number }
}

/** Describes a harmful setting and its effect. False if the client's setting is harmless. */
type Harm = string | false

function harmsOf(client: RedisClient): readonly Harm[] {
  const { isCluster, options, _options: cluster } = client as Shown
  if (has(client, 'evalSha')) {
    const keyPrefix = has(client, 'nodeClient') ? cluster?.keyPrefix : undefined
    return [...nodeRedis(cluster?.defaults ?? options ?? {}), braces(keyPrefix)]
  }
  if (!has(client, 'evalsha') || options === undefined) return []
  return isCluster === true ? ioredisCluster(options) : ioredis(options)
}

function ioredis({ maxRetriesPerRequest, retryStrategy, role }: Settings): readonly Harm[] {
  return [
    maxRetriesPerRequest === null &&
      'maxRetriesPerRequest is null: commands wait until Redis is back, and then charge requests that have timed out. ' +
        'Use the default, or a separate client for the limiter.',
    typeof retryStrategy !== 'function' &&
      "retryStrategy isn't a function: the client doesn't reconnect after the first lost connection. Remove the option.",
    role === 'slave' && `role is 'slave': ${REPLICA} Set it to 'master'.`,
  ]
}

const REPLICA = 'a replica rejects writes, and the limiter writes for each admitted request.'

/** Warns if redirecting a command can take longer than this. With the client's defaults, it takes up to 1.6 s. */
const LONGEST_REDIRECTIONS_MS = 30_000

function ioredisCluster(options: Settings): readonly Harm[] {
  const { maxRedirections = 16, shardedSubscribers, autoPipeliningIgnoredCommands: ignored = [] } = options
  const delays = [options.retryDelayOnFailover, options.retryDelayOnClusterDown, options.retryDelayOnTryAgain]
  const longestMs = Math.max(...delays.map((delayMs) => delayMs ?? 100))
  const isPipelined = options.enableAutoPipelining === true && !ignored.includes('evalsha')
  return [
    typeof options.clusterRetryStrategy !== 'function' &&
      "clusterRetryStrategy isn't a function: the client closes permanently if it can't reach any server. Remove the option.",
    maxRedirections * longestMs > LONGEST_REDIRECTIONS_MS &&
      `maxRedirections is ${maxRedirections}, with delays of up to ${longestMs} ms: while a slot has no server, commands are redirected ` +
        'repeatedly, and are charged after their requests have timed out. Use the defaults.',
    isPipelined &&
      shardedSubscribers === undefined &&
      'enableAutoPipelining is true: iovalkey sends scripts to the wrong servers of a Cluster, which reject them. ' +
        "Add 'evalsha' and 'eval' to autoPipeliningIgnoredCommands.",
    braces(options.keyPrefix ?? options.redisOptions?.keyPrefix),
  ]
}

function nodeRedis({ readonly, socket = {} }: Settings): readonly Harm[] {
  const { reconnectStrategy, socketTimeout = 0 } = socket
  return [
    reconnectStrategy === false &&
      "socket.reconnectStrategy is false: the client doesn't reconnect after the first lost connection. Remove the option, or set a function.",
    socketTimeout > 0 &&
      reconnectStrategy === undefined &&
      'socket.socketTimeout is set without socket.reconnectStrategy: by default, the client closes permanently after this time without ' +
        'traffic. Set a reconnectStrategy.',
    readonly === true && `readonly is true: ${REPLICA} Remove the option.`,
  ]
}

/** On a Cluster, the text in braces determines a key's slot. */
function braces(keyPrefix = ''): Harm {
  return (
    /\{[^}]+\}/.test(keyPrefix) &&
    'keyPrefix has braces: all keys for the limiter are in one slot, on one server. Remove the braces.'
  )
}
