import { ask, askText } from './ask.ts'
import { type ClusterNode, join, startAll } from './cluster-nodes.ts'
import { askView, hasSlot, isMaster, type NodeLine, rolesOf } from './cluster-view.ts'
import { type OpenSlot, openSlot } from './slot-migration.ts'
import { until } from './until.ts'

export type { ClusterNode } from './cluster-nodes.ts'

interface MigrateOptions {
  /** Number of keys that each MIGRATE moves. Default: 10. */
  readonly step?: number
  /** Called while the slot is open and before any key moves. When the promise resolves, the migration is completed. */
  leaveOpenUntil?(open: OpenSlot): Promise<unknown>
}

/** A real Redis Cluster for one test, on loopback. Only `nodes.conf` survives a restart of a node. */
export interface RedisCluster {
  /** First the nodes that start as masters, then the replicas. */
  readonly nodes: readonly ClusterNode[]
  /** Current masters that haven't failed, according to the node with the newest epoch. */
  masters(): Promise<ClusterNode[]>
  masterOf(slot: number): Promise<ClusterNode>
  replicasOf(master: ClusterNode): Promise<ClusterNode[]>
  /**
   * Promotes a replica of this master, and waits until all awake nodes know it.
   * `force` works without the old master, which may be dead or frozen. Masters refuse to vote within 3 s of the last
   * failover among the same nodes; then it takes 6 s longer.
   */
  failover(master: ClusterNode, options?: { readonly force?: boolean }): Promise<ClusterNode>
  /** Waits until the cluster has replaced a master that was killed or frozen. */
  replaced(master: ClusterNode): Promise<ClusterNode>
  /** Waits until awake nodes agree on roles and accept writes. Replicas are in sync then. */
  settled(): Promise<void>
  /** Reshards one slot. Moves its keys step by step, then assigns it to the new master. */
  migrateSlot(slot: number, to: ClusterNode, options?: MigrateOptions): Promise<void>
  /** Opens a slot for migration. Call {@link OpenSlot.finish} or {@link OpenSlot.cancel} afterwards. */
  openSlot(slot: number, to: ClusterNode): Promise<OpenSlot>
  stop(): Promise<void>
}

export interface ClusterOptions {
  readonly masters?: number
  /** Replicas per master. */
  readonly replicas?: number
  /** More command line arguments for each node. */
  readonly settings?: readonly string[]
}

export async function startCluster(options: ClusterOptions = {}): Promise<RedisCluster> {
  const { masters: masterCount = 3, replicas: replicaCount = 1, settings = [] } = options
  const size = masterCount * (1 + replicaCount)
  // Without replicas, no node can take over, so nodes wait longer for a master that hangs.
  const patience = replicaCount === 0 ? ['--cluster-node-timeout', '10000'] : []
  const processes = await startAll(size, [...patience, ...settings])
  const stop = async () => {
    await Promise.all(processes.map((process) => process.stop()))
  }
  try {
    const nodes: ClusterNode[] = await Promise.all(
      processes.map(async (process) => {
        return Object.assign(process, { id: await askText(process.port, 'CLUSTER', 'MYID') })
      }),
    )
    const cluster = connected(nodes, masterCount, stop)
    await join(nodes, masterCount)
    await cluster.settled()
    return cluster
  } catch (error) {
    await stop()
    throw error
  }
}

function connected(
  nodes: readonly ClusterNode[],
  masterCount: number,
  stop: () => Promise<void>,
): RedisCluster {
  const awake = () => nodes.filter(({ isAwake }) => isAwake)
  const nodeOf = ({ id }: NodeLine) => nodes.find((node) => node.id === id)!

  /** Returns the view of the node that knows the latest change. */
  async function bestView(): Promise<NodeLine[]> {
    const views = await Promise.all(awake().map(({ port }) => askView(port)))
    const newest = (view: NodeLine[]) => Math.max(...view.map(({ epoch }) => epoch))
    return views.reduce((best, view) => (newest(view) > newest(best) ? view : best))
  }

  async function masterOf(slot: number): Promise<ClusterNode> {
    const line = (await bestView()).find((line) => isMaster(line) && hasSlot(line, slot))
    if (line === undefined) throw new Error(`slot ${slot} has no master`)
    return nodeOf(line)
  }

  async function replicasOf(master: ClusterNode): Promise<ClusterNode[]> {
    return (await bestView()).filter(({ masterId }) => masterId === master.id).map(nodeOf)
  }

  async function settled(): Promise<void> {
    await until('the cluster is settled', async () => {
      const states = await Promise.all(awake().map(stateOf))
      return states.every(({ isOk, roles }) => isOk && roles === states[0]?.roles)
    })
  }

  // Replicas never change their master's group, so `familyOf` doesn't change either: see join().
  const familyOf = (node: ClusterNode) => nodes.indexOf(node) % masterCount

  async function replaced(master: ClusterNode): Promise<ClusterNode> {
    const line = await until(`another master instead of ${master.port}`, async () => {
      const view = await bestView()
      const old = view.find(({ id }) => id === master.id)
      if (old !== undefined && isMaster(old)) return false
      return view.find((line) => isMaster(line) && familyOf(nodeOf(line)) === familyOf(master))
    })
    await settled()
    return nodeOf(line)
  }

  async function failover(master: ClusterNode, { force = false } = {}): Promise<ClusterNode> {
    const replica = (await replicasOf(master)).find(({ isAwake }) => isAwake)
    if (replica === undefined) throw new Error(`the master on port ${master.port} has no replica awake`)
    await ask(replica.port, 'CLUSTER', 'FAILOVER', ...(force ? ['FORCE'] : []))
    await until('the replica is master', async () => {
      return (await bestView()).some((line) => line.id === replica.id && isMaster(line))
    })
    await settled()
    return replica
  }

  async function open(slot: number, to: ClusterNode): Promise<OpenSlot> {
    return openSlot(slot, await masterOf(slot), to, (await bestView()).filter(isMaster).map(nodeOf))
  }

  return {
    nodes,
    masters: async () => (await bestView()).filter(isMaster).map(nodeOf),
    masterOf,
    replicasOf,
    failover,
    replaced,
    settled,
    async migrateSlot(slot, to, { step = 10, leaveOpenUntil } = {}) {
      const opened = await open(slot, to)
      await leaveOpenUntil?.(opened)
      while ((await opened.move(step)) > 0);
      await opened.finish()
    },
    openSlot: open,
    stop,
  }
}

async function stateOf({ port }: ClusterNode): Promise<{ isOk: boolean; roles: string }> {
  const [info, replication, view] = await Promise.all([
    askText(port, 'CLUSTER', 'INFO'),
    askText(port, 'INFO', 'replication'),
    askView(port),
  ])
  const isInSync = replication.includes('role:master') || replication.includes('master_link_status:up')
  return { isOk: info.includes('cluster_state:ok') && isInSync, roles: rolesOf(view) }
}
