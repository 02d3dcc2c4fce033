import { ask } from './ask.ts'
import { askView } from './cluster-view.ts'
import { freeClusterPort } from './ports.ts'
import { type RedisProcess, startProcess } from './redis-process.ts'
import { COMMON } from './redis-server.ts'
import { until } from './until.ts'

const SLOTS = 16_384

export interface ClusterNode extends Omit<RedisProcess, 'stop'> {
  readonly id: string
}

/** Starts nodes that don't know each other yet. */
export async function startAll(size: number, settings: readonly string[]): Promise<RedisProcess[]> {
  const started = await Promise.allSettled(Array.from({ length: size }, () => startNode(settings)))
  const failed = started.find(({ status }) => status === 'rejected') as PromiseRejectedResult | undefined
  const processes = started.flatMap((result) => (result.status === 'fulfilled' ? [result.value] : []))
  if (failed === undefined) return processes
  await Promise.all(processes.map((process) => process.stop()))
  throw failed.reason
}

async function startNode(settings: readonly string[]): Promise<RedisProcess> {
  const port = await freeClusterPort()
  return startProcess({
    port,
    words: (folder) => [
      ...['--port', `${port}`, '--bind', '127.0.0.1', '--dir', folder],
      ...COMMON,
      ...['--cluster-enabled', 'yes', '--cluster-announce-ip', '127.0.0.1'],
      // A failover takes about twice this time.
      ...['--cluster-node-timeout', '1500'],
      // Each master keeps its replicas. Any replica may take over, however long it was disconnected.
      ...['--cluster-allow-replica-migration', 'no', '--cluster-replica-validity-factor', '0'],
      ...['--repl-diskless-sync-delay', '0', '--repl-ping-replica-period', '1'],
      ...settings,
    ],
  })
}

/** Joins nodes into one cluster. The first `masterCount` are its masters. Resolves when all nodes know each other. */
export async function join(nodes: readonly ClusterNode[], masterCount: number): Promise<void> {
  await Promise.all(nodes.map(({ port }, i) => ask(port, 'CLUSTER', 'SET-CONFIG-EPOCH', i + 1)))
  const masters = nodes.slice(0, masterCount)
  await Promise.all(
    masters.map(({ port }, i) => {
      const first = Math.floor((i * SLOTS) / masterCount)
      const last = Math.floor(((i + 1) * SLOTS) / masterCount) - 1
      return ask(port, 'CLUSTER', 'ADDSLOTSRANGE', first, last)
    }),
  )
  await until('all nodes know each other', async () => {
    const views = await Promise.all(nodes.map(({ port }) => askView(port)))
    // Introduces every node to every other, which is faster than gossip. Repeats this, because a node that doesn't
    // respond in time is forgotten.
    for (const [i, { port }] of nodes.entries()) {
      const strangers = nodes.slice(i + 1).filter((other) => !views[i]!.some(({ id }) => id === other.id))
      for (const other of strangers) await ask(port, 'CLUSTER', 'MEET', '127.0.0.1', other.port)
    }
    return views.every(
      (view) => view.length === nodes.length && !view.some(({ flags }) => flags.includes('handshake')),
    )
  })
  await Promise.all(
    nodes.slice(masterCount).map(({ port }, i) => {
      return ask(port, 'CLUSTER', 'REPLICATE', masters[i % masterCount]!.id)
    }),
  )
}
