import { ask, askText } from '../support/ask.ts'
import type { ClusterNode, RedisCluster } from '../support/redis-cluster.ts'
import { until } from '../support/until.ts'
import type { Course } from './fault.ts'
import { STRUCK_SLOT, STRUCK_TAG } from './keys.ts'

/** The one to which all happens. */
export function struckMaster(redis: RedisCluster): Promise<ClusterNode> {
  return redis.masterOf(STRUCK_SLOT)
}

async function replaced(redis: RedisCluster, master: ClusterNode): Promise<void> {
  await until('another master', async () => {
    const next = await redis.masterOf(STRUCK_SLOT)
    return next !== master && (await askText(next.port, 'CLUSTER', 'INFO')).includes('cluster_state:ok')
  })
}

export async function crash(redis: RedisCluster, master: ClusterNode): Promise<Course> {
  return { inject: () => master.kill(), heal: () => replaced(redis, master) }
}

export async function failover(redis: RedisCluster, master: ClusterNode): Promise<Course> {
  const [replica] = await redis.replicasOf(master)
  return {
    inject: async () => {
      await ask(replica!.port, 'CLUSTER', 'FAILOVER')
    },
    // Redis 7.0 at times does not go through with it: then the old master holds writes for 5 s, and goes on.
    async heal() {
      await until('one of the two writes, the other does not', async () => {
        const replies = await Promise.all([replyOf(master), replyOf(replica!)])
        return replies.filter((reply) => reply === 'OK').length === 1
      })
    },
  }
}

async function replyOf({ port }: ClusterNode): Promise<string> {
  return askText(port, 'SET', `slidegate:{${STRUCK_TAG}}`, '', 'PX', 1).catch((error: Error) => error.message)
}

export async function freeze(_: RedisCluster, master: ClusterNode): Promise<Course> {
  return { inject: async () => master.freeze(), heal: async () => master.thaw() }
}

/** Some keys on either side for a while, then the others too. */
export async function reshard(redis: RedisCluster, master: ClusterNode): Promise<Course> {
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
