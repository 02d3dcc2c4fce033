// Warns of client settings that don't suit a limiter.

import { has, type RedisClient } from './clients.ts'

const PAGE = 'docs/production.md#client-settings'

/** Clients that have had their warning. */
const warned = new WeakSet<object>()

/** Settings with which a limiter does harm, in one warning per client. What is merely not the best is none of them. */
export function warnOfClient(client: RedisClient): void {
  if (warned.has(client)) return
  const harms = harmsOf(client)
  if (harms.length === 0) return
  warned.add(client)
  process.emitWarning(`The Redis client handed to redisStore is set to do harm. See ${PAGE}.`, {
    type: 'SlidegateWarning',
    code: 'SLIDEGATE_CLIENT_SETTINGS',
    detail: harms.map((harm) => `- ${harm}`).join('\n'),
  })
}

/** What is looked at, if the client shows it. */
interface Shown {
  readonly isCluster?: boolean
  readonly options?: IoredisSettings & NodeRedisSettings
  /** Of a Cluster of node-redis. */
  readonly _options?: { readonly defaults?: NodeRedisSettings; readonly keyPrefix?: unknown }
}

interface IoredisSettings {
  readonly maxRetriesPerRequest?: number | null
  readonly retryStrategy?: unknown
  readonly clusterRetryStrategy?: unknown
  readonly role?: string
  readonly keyPrefix?: unknown
  readonly maxRedirections?: number
  readonly retryDelayOnFailover?: number
  readonly retryDelayOnClusterDown?: number
  readonly retryDelayOnTryAgain?: number
  readonly redisOptions?: { readonly keyPrefix?: unknown }
  readonly enableAutoPipelining?: boolean
  readonly autoPipeliningIgnoredCommands?: readonly string[]
  /** Known to ioredis, and not to iovalkey. */
  readonly shardedSubscribers?: boolean
}

interface NodeRedisSettings {
  readonly readonly?: boolean
  readonly socket?: { readonly reconnectStrategy?: unknown; readonly socketTimeout?: number }
}

function harmsOf(client: RedisClient): string[] {
  const shown = client as Shown
  if (has(client, 'evalSha')) {
    const { defaults, keyPrefix } = shown._options ?? {}
    return [
      ...nodeRedis(defaults ?? shown.options ?? {}),
      ...(has(client, 'nodeClient') ? prefixed(keyPrefix) : []),
    ]
  }
  if (!has(client, 'evalsha') || shown.options === undefined) return []
  return shown.isCluster === true ? ioredisCluster(shown.options) : ioredis(shown.options)
}

function ioredis(options: IoredisSettings): string[] {
  const harms: string[] = []
  if (options.maxRetriesPerRequest === null)
    harms.push(
      'maxRetriesPerRequest is null: commands wait for as long as Redis is away, and are charged when nobody waits for them any more. ' +
        'Leave it at its default, or give the limiter a client of its own.',
    )
  if (typeof options.retryStrategy !== 'function')
    harms.push('retryStrategy is no function: the first lost connection is lost for good. Leave it out.')
  if (options.role === 'slave') harms.push(REPLICA("role is 'slave'", "'master'"))
  return harms
}

/** For so long a command may be passed on from server to server. By default it is 1.6 s. */
const LONGEST_REDIRECTIONS_MS = 30_000

function ioredisCluster(options: IoredisSettings): string[] {
  const harms: string[] = []
  if (typeof options.clusterRetryStrategy !== 'function')
    harms.push(
      'clusterRetryStrategy is no function: when no server can be reached, the client ends for good. Leave it out.',
    )
  const { maxRedirections = 16 } = options
  const delays = [options.retryDelayOnFailover, options.retryDelayOnClusterDown, options.retryDelayOnTryAgain]
  const longestMs = Math.max(...delays.map((delayMs) => delayMs ?? 100))
  if (maxRedirections * longestMs > LONGEST_REDIRECTIONS_MS)
    harms.push(
      `maxRedirections is ${maxRedirections}, with ${longestMs} ms in between: commands wander for that long while slots have no server, ` +
        'and are charged when nobody waits for them any more. Leave both at their defaults.',
    )
  const { enableAutoPipelining, autoPipeliningIgnoredCommands: ignored = [], shardedSubscribers } = options
  if (enableAutoPipelining === true && shardedSubscribers === undefined && !ignored.includes('evalsha'))
    harms.push(
      'enableAutoPipelining is true: iovalkey sends scripts of a Cluster to any server, which refuses them. ' +
        "Put 'evalsha' and 'eval' among the autoPipeliningIgnoredCommands.",
    )
  return [...harms, ...prefixed(options.keyPrefix ?? options.redisOptions?.keyPrefix)]
}

function nodeRedis({ readonly, socket = {} }: NodeRedisSettings): string[] {
  const harms: string[] = []
  const { reconnectStrategy, socketTimeout = 0 } = socket
  if (reconnectStrategy === false)
    harms.push(
      'socket.reconnectStrategy is false: the first lost connection is lost for good. Leave it out, or give a function.',
    )
  if (socketTimeout > 0 && reconnectStrategy === undefined)
    harms.push(
      'socket.socketTimeout is set, and socket.reconnectStrategy is not: by default the client ends for good when the time is over, ' +
        'as after a quiet minute. Give a reconnectStrategy.',
    )
  if (readonly === true) harms.push(REPLICA('readonly is true', 'false'))
  return harms
}

const REPLICA = (is: string, right: string): string =>
  `${is}: a replica refuses to write, and the limiter writes with each request that it admits. It has to be ${right}.`

/** On a Cluster, what stands in braces decides where a key lies. */
function prefixed(keyPrefix: unknown): string[] {
  if (typeof keyPrefix !== 'string' || !/\{[^}]+\}/.test(keyPrefix)) return []
  return ['keyPrefix has braces: all keys of the limiter lie in one slot, on one server. Leave them out.']
}
