import { ask, askText } from './ask.ts'
import { type ClusterNode, join, startAll } from './cluster-nodes.ts'
import { askView, hasSlot, isMaster, type NodeLine, rolesOf } from './cluster-view.ts'
import { type OpenSlot, openSlot } from './slot-migration.ts'
import { until } from './until.ts'

export type { ClusterNode } from './cluster-nodes.ts'

interface MigrateOptions {
  /** How many keys each MIGRATE takes along; 10 if left out. */
  readonly step?: number
  /** Called with the slot open and no key moved yet. When it has resolved, the migration is brought to its end. */
  leaveOpenUntil?(open: OpenSlot): Promise<unknown>
}

/** A real Redis Cluster of this test's own, on loopback; nothing but `nodes.conf` outlives a node's process. */
export interface RedisCluster {
  /** Masters at the start first, then replicas. */
  readonly nodes: readonly ClusterNode[]
  /** Those that are masters now and not known to have failed, as the best informed node sees it. */
  masters(): Promise<ClusterNode[]>
  masterOf(slot: number): Promise<ClusterNode>
  replicasOf(master: ClusterNode): Promise<ClusterNode[]>
  /**
   * Makes a replica of this master the master, and waits until all nodes that are awake know.
   * `force` does without the old master, which may be dead or frozen.
   * Within 3 s of the last failover among the same nodes masters refuse their votes, and it takes 6 s more.
   */
  failover(master: ClusterNode, options?: { readonly force?: boolean }): Promise<ClusterNode>
  /** Waits until the cluster itself has put a replica in the place of a master that was killed or frozen. */
  replaced(master: ClusterNode): Promise<ClusterNode>
  /** Waits until nodes that are awake agree on who is who, can be written to, and replicas are in sync. */
  settled(): Promise<void>
  /** Real resharding of one slot: opens it, moves its keys step by step, hands it over. */
  migrateSlot(slot: number, to: ClusterNode, options?: MigrateOptions): Promise<void>
  /** The same, in the hands of the caller, who has to call {@link OpenSlot.finish} or {@link OpenSlot.cancel}. */
  openSlot(slot: number, to: ClusterNode): Promise<OpenSlot>
  stop(): Promise<void>
}

export interface ClusterOptions {
  readonly masters?: number
  /** Of each master. */
  readonly replicas?: number
  /** Further command line words of each node. */
  readonly settings?: readonly string[]
}

export async function startCluster(options: ClusterOptions = {}): Promise<RedisCluster> {
  const { masters: masterCount = 3, replicas: replicaCount = 1, settings = [] } = options
  const size = masterCount * (1 + replicaCount)
  // Where there is nobody to take over, a master that stands still is waited for.
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

  /** The view of the node that has heard of the latest change. */
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

  // Replicas never change sides, so a master and its replicas are a family for good; see join().
  const familyOf = (node: ClusterNode) => nodes.indexOf(node) % masterCount

  async function replaced(master: ClusterNode): Promise<ClusterNode> {
    const line = await until(`another node in the place of ${master.port}`, async () => {
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
