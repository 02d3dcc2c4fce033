import { ask, askText } from '../../support/ask.ts'
import { type ClusterNode, type RedisCluster, startCluster } from '../../support/redis-cluster.ts'
import { until } from '../../support/until.ts'
import type { Course, Fault, Scene } from './fault.ts'
import { STRUCK_SLOT, STRUCK_TAG } from './keys.ts'

/** Returns the master that all faults affect. */
function struckMaster(redis: RedisCluster): Promise<ClusterNode> {
  return redis.masterOf(STRUCK_SLOT)
}

async function replaced(redis: RedisCluster, master: ClusterNode): Promise<void> {
  await until('another master', async () => {
    const next = await redis.masterOf(STRUCK_SLOT)
    return next !== master && (await askText(next.port, 'CLUSTER', 'INFO')).includes('cluster_state:ok')
  })
}

async function crash(redis: RedisCluster, master: ClusterNode): Promise<Course> {
  return { inject: () => master.kill(), heal: () => replaced(redis, master) }
}

async function failover(redis: RedisCluster, master: ClusterNode): Promise<Course> {
  const [replica] = await redis.replicasOf(master)
  return {
    inject: async () => {
      await ask(replica!.port, 'CLUSTER', 'FAILOVER')
    },
    // Redis 7.0 sometimes abandons the failover. Then the old master pauses writes for 5 s, and resumes.
    async heal() {
      await until("one of the two accepts writes, and the other doesn't", async () => {
        const replies = await Promise.all([replyOf(master), replyOf(replica!)])
        return replies.filter((reply) => reply === 'OK').length === 1
      })
    },
  }
}

async function replyOf({ port }: ClusterNode): Promise<string> {
  return askText(port, 'SET', `slidegate:{${STRUCK_TAG}}`, '', 'PX', 1).catch((error: Error) => error.message)
}

async function freeze(_: RedisCluster, master: ClusterNode): Promise<Course> {
  return { inject: async () => master.freeze(), heal: async () => master.thaw() }
}

/** Leaves some keys on either side for a while, then moves the rest. */
async function reshard(redis: RedisCluster, master: ClusterNode): Promise<Course> {
  const to = (await redis.masters()).find((other) => other !== master)!
  let finish = async () => {}
  return {
    async inject() {
      const open = await redis.openSlot(STRUCK_SLOT, to)
      await open.move(Math.ceil((await open.keysLeft()).length / 2))
      finish = async () => {
        while ((await open.move(1)) > 0);
        await open.finish()
      }
    },
    heal: () => finish(),
  }
}

let shared: Promise<RedisCluster> | undefined

/** Returns one cluster for all faults, because it takes a long time to start. */
function cluster(): Promise<RedisCluster> {
  shared ??= startCluster()
  return shared
}

export async function stopCluster(): Promise<void> {
  await (await shared)?.stop()
  shared = undefined
}

function onCluster(course: (redis: RedisCluster, master: ClusterNode) => Promise<Course>) {
  return async (): Promise<Scene> => {
    const redis = await cluster()
    await redis.settled()
    const masters = await redis.masters()
    await Promise.all(masters.map(({ port }) => ask(port, 'FLUSHALL')))
    const master = await struckMaster(redis)
    // A master other than the affected one, so that clients must discover that one.
    const { port } = masters.find((other) => other !== master)!
    return {
      target: { port },
      ...(await course(redis, master)),
      async end() {
        const fallen = redis.nodes.filter(({ isAwake }) => !isAwake)
        await Promise.all(fallen.map((node) => node.start()))
        await redis.settled()
      },
    }
  }
}

export const CLUSTER_FAULTS: readonly Fault[] = [
  {
    name: 'cluster-kill',
    title: 'a primary killed, its replica takes over',
    on: 'cluster',
    isFelt: 'surely',
    keepsData: false,
    lastsMs: 100,
    setUp: onCluster(crash),
  },
  {
    name: 'cluster-failover',
    title: '`CLUSTER FAILOVER`',
    on: 'cluster',
    isFelt: 'perhaps',
    keepsData: true,
    lastsMs: 0,
    setUp: onCluster(failover),
  },
  {
    name: 'cluster-freeze',
    title: 'a primary hangs, then resumes',
    on: 'cluster',
    isFelt: 'surely',
    keepsData: true,
    lastsMs: 600,
    setUp: onCluster(freeze),
  },
  {
    name: 'reshard',
    title: 'a slot moves (`ASK`, `TRYAGAIN`, `MOVED`)',
    on: 'cluster',
    isFelt: 'perhaps',
    keepsData: true,
    lastsMs: 500,
    setUp: onCluster(reshard),
  },
]
