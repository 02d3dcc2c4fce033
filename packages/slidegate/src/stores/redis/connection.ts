import { invalidOption, type Silence, show } from '../../errors.ts'
import { Start } from '../start.ts'
import type { StoreConnection } from '../store.ts'
import type { CallCounts } from './call-counts.ts'
import { dialectOf, type RedisClient, type Send } from './clients.ts'
import { SCRIPT, SCRIPT_SHA1 } from './script.generated.ts'

/** Runs the script. */
export interface ScriptRunner {
  /** Whether Redis knows the script, as far as we know. Where it does not, calls that wait at the same time may change places. */
  readonly isLoaded: boolean
  run(keys: string[], words: string[]): Promise<unknown>
}

/** What is known of a client. */
export interface Connection extends StoreConnection {
  /** For messages: `Redis at 127.0.0.1:6379`, or `Redis` if the client doesn't show the address. */
  readonly server: string
  /** Whether it is one of a Cluster: then the keys of a call have to lie in one slot. */
  readonly isCluster: boolean
  /** Whether it sends a command again whose reply got lost. */
  readonly resends: boolean
  /** Whether it sends commands at once, or refuses them. Else it would queue them, for as long as it takes. */
  readonly isReady: boolean
  /**
   * Each goes by what it has seen itself: on a Cluster, some servers may know the script and others not.
   *
   * @param counts who is told when a server did not know it
   */
  scriptRunner(counts?: CallCounts): ScriptRunner
}

/**
 * Clients are told apart by what they can do, never by the name of their class.
 *
 * @throws {SlidegateError} `invalid_option` for anything else
 */
export function connectionOf(client: RedisClient): Connection {
  const dialect = dialectOf(client)
  if (dialect === undefined) {
    throw invalidOption(
      `the Redis client is ${show(client)}; give a client of ioredis, iovalkey, node-redis or Valkey GLIDE, { url }, or { command(words) }`,
      client,
    )
  }
  const server = serverOf(dialect.address)
  // With the first answer it is over: the script may have to be loaded, too.
  const hasFailed = () => !dialect.isStarting() && !dialect.isReady()
  const start = dialect.isStarting() ? new Start(hasFailed) : undefined
  return {
    server,
    isCluster: dialect.isCluster,
    resends: dialect.resends,
    get isReady() {
      return dialect.isReady()
    },
    whenStarted: () => start?.whenOver,
    silence: () => silenceOf(server, dialect.isReady(), dialect.lastError()),
    scriptRunner: (counts) => scriptRunner(dialect.send, counts, start),
  }
}

/** @param address left out if it isn't known */
export function serverOf(address: string | undefined): string {
  return address === undefined ? 'Redis' : `Redis at ${address}`
}

export function silenceOf(server: string, isConnected: boolean, cause: Error | undefined): Silence {
  return isConnected
    ? { message: `${server} did not answer` }
    : { message: `no connection to ${server}`, cause }
}

/** @param start ended with the first answer */
export function scriptRunner(send: Send, counts?: CallCounts, start?: Pick<Start, 'end'>): ScriptRunner {
  let isLoaded = false
  return {
    get isLoaded() {
      return isLoaded
    },
    async run(keys, words) {
      try {
        const reply = await send('EVALSHA', SCRIPT_SHA1, keys, words)
        isLoaded = true
        return reply
      } catch (error) {
        if (!saysNoScript(error)) throw error
        // A new server, a restart, a failover or SCRIPT FLUSH: nothing was executed. EVAL does that, and loads it.
        isLoaded = false
        counts?.scriptLoaded()
        return await send('EVAL', SCRIPT, keys, words)
      } finally {
        start?.end()
      }
    },
  }
}

/** Valkey GLIDE does not hand on the words of the server. */
function saysNoScript(error: unknown): boolean {
  return error instanceof Error && /^NOSCRIPT|\bNoScriptError\b/.test(error.message)
}
