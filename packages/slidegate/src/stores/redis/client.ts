import { SlidegateError, show } from '../../errors.ts'
import { SCRIPT, SCRIPT_SHA1 } from './script.generated.ts'

/** What is used of ioredis, from 5.11 on: a `Redis`. */
export interface IoredisClient {
  evalsha(sha1: string, numkeys: number, ...args: string[]): Promise<unknown>
  eval(script: string, numkeys: number, ...args: string[]): Promise<unknown>
}

/** What is used of node-redis, from 5 on: the client that `createClient()` makes, or a pool. */
export interface NodeRedisClient {
  evalSha(sha1: string, options: { keys: string[]; arguments: string[] }): Promise<unknown>
  eval(script: string, options: { keys: string[]; arguments: string[] }): Promise<unknown>
}

/** Any other way to Redis: sends one command, such as `['EVALSHA', ...]`, and resolves to its reply. */
export interface CommandClient {
  command(words: readonly string[]): Promise<unknown>
}

export type RedisClient = IoredisClient | NodeRedisClient | CommandClient

/** Runs the script. */
export interface ScriptRunner {
  /** Whether Redis knows the script, as far as we know. Where it does not, calls that wait at the same time may change places. */
  readonly isLoaded: boolean
  run(keys: string[], words: string[]): Promise<unknown>
}

/** What is known of a client. */
export interface Connection {
  /** Whether it is one of a Cluster: then the keys of a call have to lie in one slot. */
  readonly isCluster: boolean
  /** Whether it sends a command again whose reply got lost. */
  readonly resends: boolean
  /** Whether it hands commands to a server at once. While it has none, it may queue them, for as long as it takes. */
  readonly isReady: boolean
  /** Each goes by what it has seen itself: on a Cluster, some servers may know the script and others not. */
  scriptRunner(): ScriptRunner
}

/**
 * Clients are told apart by what they can do, never by the name of their class.
 *
 * @throws {SlidegateError} `invalid_option` for anything else
 */
export function connectionOf(client: RedisClient): Connection {
  const commands = commandsOf(client)
  return { isCluster: false, resends: false, isReady: true, scriptRunner: () => scriptRunner(commands) }
}

function scriptRunner({ evalsha, eval: evaluate }: Commands): ScriptRunner {
  let isLoaded = false
  return {
    get isLoaded() {
      return isLoaded
    },
    async run(keys, words) {
      try {
        const reply = await evalsha(SCRIPT_SHA1, keys, words)
        isLoaded = true
        return reply
      } catch (error) {
        if (!(error instanceof Error && error.message.startsWith('NOSCRIPT'))) throw error
        // A new server, a restart, a failover or SCRIPT FLUSH: nothing was executed. EVAL does that, and loads it.
        isLoaded = false
        return evaluate(SCRIPT, keys, words)
      }
    },
  }
}

type Evaluate = (script: string, keys: string[], words: string[]) => Promise<unknown>

interface Commands {
  readonly evalsha: Evaluate
  readonly eval: Evaluate
}

function commandsOf(client: RedisClient): Commands {
  if (has(client, 'evalSha') && has(client, 'eval')) {
    const redis = client as NodeRedisClient
    return {
      evalsha: (sha1, keys, words) => redis.evalSha(sha1, { keys, arguments: words }),
      eval: (script, keys, words) => redis.eval(script, { keys, arguments: words }),
    }
  }
  if (has(client, 'evalsha') && has(client, 'eval')) {
    const redis = client as IoredisClient
    return {
      evalsha: (sha1, keys, words) => redis.evalsha(sha1, keys.length, ...keys, ...words),
      eval: (script, keys, words) => redis.eval(script, keys.length, ...keys, ...words),
    }
  }
  if (has(client, 'command')) {
    const redis = client as CommandClient
    return {
      evalsha: (sha1, keys, words) =>
        redis.command(['EVALSHA', sha1, String(keys.length), ...keys, ...words]),
      eval: (script, keys, words) => redis.command(['EVAL', script, String(keys.length), ...keys, ...words]),
    }
  }
  throw new SlidegateError(
    'invalid_option',
    `the Redis client is ${show(client)}; give a client of ioredis or node-redis, or { command(words) }`,
    client,
  )
}

function has(client: unknown, method: string): boolean {
  return typeof (client as Record<string, unknown> | null | undefined)?.[method] === 'function'
}
