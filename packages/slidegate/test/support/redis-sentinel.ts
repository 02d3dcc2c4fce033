import { existsSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { RESTRICTED } from './access.ts'
import { ask, askText } from './ask.ts'
import { freePort } from './ports.ts'
import { type RedisProcess, startProcess } from './redis-process.ts'
import type { RedisServer } from './redis-server.ts'
import { until } from './until.ts'

/** A master, its replicas and the sentinels that watch them, on loopback. No data is persisted. */
export interface RedisSentinel {
  readonly masterName: string
  /** The ports of the sentinels, for a client. */
  readonly sentinels: readonly number[]
  readonly sentinelProcesses: readonly Omit<RedisProcess, 'stop'>[]
  /** The initial master, then its replicas. */
  readonly servers: readonly Omit<RedisServer, 'stop'>[]
  /** The current master, as the first awake sentinel sees it. */
  master(): Promise<RedisServer>
  /** Triggers a failover, waits until all sentinels know it, and returns the new master. */
  failover(): Promise<RedisServer>
  /** Waits until the sentinels have replaced a master that was killed or frozen. */
  replaced(master: Omit<RedisServer, 'stop'>): Promise<RedisServer>
  /** Waits until awake sentinels agree on the master, and replicas are in sync. */
  settled(): Promise<void>
  stop(): Promise<void>
}

export interface SentinelOptions {
  readonly replicas?: number
  readonly sentinels?: number
  /** More lines for each server's configuration, such as `maxmemory 4mb`. */
  readonly settings?: readonly string[]
}

const MASTER_NAME = 'mymaster'

export async function startSentinel(options: SentinelOptions = {}): Promise<RedisSentinel> {
  const { replicas: replicaCount = 1, sentinels: sentinelCount = 1, settings = [] } = options
  const started: RedisProcess[] = []
  const stop = async () => {
    await Promise.all(started.map((process) => process.stop()))
  }
  const keep = async <T extends RedisProcess>(starting: Promise<T>): Promise<T> => {
    const process = await starting
    started.push(process)
    return process
  }
  try {
    const first = await keep(startServer(settings))
    const replicaOf = [`replicaof 127.0.0.1 ${first.port}`, ...settings]
    const servers = [first]
    for (let i = 0; i < replicaCount; i++) servers.push(await keep(startServer(replicaOf)))
    const sentinels: RedisProcess[] = []
    const quorum = Math.floor(sentinelCount / 2) + 1
    for (let i = 0; i < sentinelCount; i++) sentinels.push(await keep(startWatcher(first.port, quorum)))
    const all = watched(servers, sentinels, stop)
    await all.settled()
    return all
  } catch (error) {
    await stop()
    throw error
  }
}

/** Writes the configuration once. Later, servers and sentinels record their replication state and peers in this file. */
function configFile(folder: string, lines: readonly string[]): string {
  const path = join(folder, 'redis.conf')
  const common = ['bind 127.0.0.1', `dir ${folder}`, 'loglevel warning']
  if (!existsSync(path)) writeFileSync(path, [...common, ...lines, ''].join('\n'))
  return path
}

async function startServer(settings: readonly string[]): Promise<RedisServer> {
  const port = await freePort()
  const user = `user ${RESTRICTED.join(' ')}`
  const lines = [`port ${port}`, 'save ""', 'appendonly no', 'repl-diskless-sync-delay 0', user, ...settings]
  const process = await startProcess({ port, words: (folder) => [configFile(folder, lines)] })
  return Object.assign(process, { url: `redis://127.0.0.1:${port}` })
}

/** Starts a sentinel. Its user isn't restricted, because it has no keys and runs no scripts. */
async function startWatcher(masterPort: number, quorum: number): Promise<RedisProcess> {
  const port = await freePort()
  const lines = [
    `port ${port}`,
    `sentinel monitor ${MASTER_NAME} 127.0.0.1 ${masterPort} ${quorum}`,
    `sentinel down-after-milliseconds ${MASTER_NAME} 1500`,
    `sentinel failover-timeout ${MASTER_NAME} 2000`,
  ]
  const process = await startProcess({ port, words: (folder) => [configFile(folder, lines), '--sentinel'] })
  // By default, sentinels look for changes every 2 s and query servers every 10 s. A sentinel that hung for 2 s takes
  // no action for 30 s.
  const periods = ['info-period', 200, 'publish-period', 200, 'ask-period', 200, 'tilt-period', 1000]
  const hurry = () => ask(port, 'SENTINEL', 'DEBUG', ...periods)
  const { start } = process
  await hurry()
  return Object.assign(process, {
    async start() {
      await start()
      await hurry()
    },
  })
}

function watched(
  servers: readonly RedisServer[],
  processes: readonly RedisProcess[],
  stop: () => Promise<void>,
): RedisSentinel {
  const awake = () => processes.filter(({ isAwake }) => isAwake)

  async function masterBy(sentinel: RedisProcess): Promise<RedisServer> {
    const address = (await ask(sentinel.port, 'SENTINEL', 'GET-MASTER-ADDR-BY-NAME', MASTER_NAME)) as string[]
    return servers.find(({ port }) => `${port}` === address[1])!
  }

  async function master(): Promise<RedisServer> {
    const [sentinel] = awake()
    if (sentinel === undefined) throw new Error('no sentinel is awake')
    return masterBy(sentinel)
  }

  async function knowsAll(sentinel: RedisProcess): Promise<boolean> {
    const words = (await ask(sentinel.port, 'SENTINEL', 'MASTER', MASTER_NAME)) as string[]
    const field = (name: string) => words[words.indexOf(name) + 1]
    return (
      field('flags') === 'master' &&
      field('num-slaves') === `${servers.length - 1}` &&
      field('num-other-sentinels') === `${processes.length - 1}`
    )
  }

  async function plays(server: RedisServer, leader: RedisServer): Promise<boolean> {
    if (!server.isAwake) return true
    const info = await askText(server.port, 'INFO', 'replication')
    if (server === leader) return info.includes('role:master')
    return info.includes(`master_port:${leader.port}`) && info.includes('master_link_status:up')
  }

  async function isSettled(): Promise<boolean> {
    const leaders = new Set(await Promise.all(awake().map(masterBy)))
    const [leader] = leaders
    if (leader === undefined || leaders.size > 1) return false
    const signs = [...awake().map(knowsAll), ...servers.map((server) => plays(server, leader))]
    return (await Promise.all(signs)).every(Boolean)
  }

  async function settled(): Promise<void> {
    await until('sentinels and servers are settled', isSettled)
  }

  async function replaced(old: Omit<RedisServer, 'stop'>): Promise<RedisServer> {
    const next = await until(`another master than ${old.port}`, async () => {
      const now = await master()
      return now.port !== old.port && now
    })
    await settled()
    return next
  }

  return {
    masterName: MASTER_NAME,
    sentinels: processes.map(({ port }) => port),
    sentinelProcesses: processes,
    servers,
    master,
    async failover() {
      const old = await master()
      // Sentinels reject this while a failover is running, and until replicas are known.
      await until('a failover begins', async () => {
        await ask(awake()[0]!.port, 'SENTINEL', 'FAILOVER', MASTER_NAME)
        return true
      })
      return replaced(old)
    },
    replaced,
    settled,
    stop,
  }
}
