import { ask } from '../support/ask.ts'
import { type ClusterNode, type RedisCluster, startCluster } from '../support/redis-cluster.ts'
import { crash, failover, freeze, reshard, struckMaster } from './cluster-courses.ts'
import type { Course, Fault, Scene } from './fault.ts'

let shared: Promise<RedisCluster> | undefined

/** One for all, since it takes long to start. */
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
    // Not the one to be struck: a client has to be told of more than one.
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
    title: 'a primary stands still, and goes on',
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
