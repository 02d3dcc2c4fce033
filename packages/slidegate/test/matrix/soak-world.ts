import type { Random } from '../simulation/random.ts'
import { type ClusterNode, startCluster } from '../support/redis-cluster.ts'
import { startRedis } from '../support/redis-server.ts'
import { startProxy } from '../support/tcp-proxy.ts'
import * as clusterCourses from './cluster-courses.ts'
import type { Course, Place, Target } from './fault.ts'
import { lasting, repeated } from './proxy-courses.ts'
import * as courses from './server-courses.ts'

/** One of the faults that may happen to a world. */
interface Incident extends Course {
  readonly name: string
  readonly keepsData: boolean
  /** Longer, and it would become another. */
  readonly longestMs?: number
}

/** A store that is struck by one fault after the other. */
export interface World {
  readonly on: Place
  readonly target: Target
  incident(random: Random): Promise<Incident>
  /** The ports of all that hold keys. */
  ports(): Promise<readonly number[]>
  end(): Promise<void>
}

const SETTINGS = ['--busy-reply-threshold', '10', ...courses.SLOW_LOADING]

/** One server behind a proxy. Connections that stay silent for good are no part of it: not every client gets over them. */
export async function serverWorld(): Promise<World> {
  const server = await startRedis(SETTINGS)
  const proxy = await startProxy(server.port)
  const incidents: readonly [string, boolean, () => Course][] = [
    ['kill', false, () => courses.restart(server)],
    ['freeze', true, () => courses.freeze(server)],
    ['pause', true, () => courses.pause(server)],
    ['script-flush', true, () => courses.forgetScripts(server)],
    ['flushall', false, () => courses.flush(server)],
    ['readonly', true, () => courses.demote(server)],
    ['full', true, () => courses.fill(server)],
    ['loading', false, () => courses.load(server)],
    ['busy', true, () => courses.busy(server)],
    ['delay-20', true, () => lasting(() => proxy.delay(20))(proxy)],
    ['delay-200', true, () => lasting(() => proxy.delay(200))(proxy)],
    ['cut-mid-reply', true, () => repeated(() => proxy.cutMidReply())(proxy)],
    ['cut-after-request', true, () => repeated(() => proxy.cutAfterRequest())(proxy)],
    ['drop-replies', true, () => lasting(() => proxy.dropReplies())(proxy)],
    ['black-hole', true, () => lasting(() => proxy.blackHole())(proxy)],
    ['refuse', true, () => lasting(() => proxy.refuse())(proxy)],
  ]
  return {
    on: 'proxy',
    target: { port: proxy.port },
    async incident(random) {
      const [name, keepsData, course] = random.pick(incidents)
      return { name, keepsData, ...course() }
    },
    ports: async () => [server.port],
    async end() {
      await proxy.stop()
      await server.stop()
    },
  }
}

/** Three primaries with a replica each. */
export async function clusterWorld(): Promise<World> {
  const redis = await startCluster()
  const incidents: readonly [string, boolean, (master: ClusterNode) => Promise<Course>][] = [
    ['cluster-kill', false, (master) => clusterCourses.crash(redis, master)],
    ['cluster-failover', true, (master) => clusterCourses.failover(redis, master)],
    ['cluster-freeze', true, (master) => clusterCourses.freeze(redis, master)],
    ['reshard', true, (master) => clusterCourses.reshard(redis, master)],
  ]
  return {
    on: 'cluster',
    target: { port: redis.nodes[0]!.port },
    async incident(random) {
      await Promise.all(redis.nodes.filter(({ isAwake }) => !isAwake).map((node) => node.start()))
      await redis.settled()
      const [name, keepsData, course] = random.pick(incidents)
      // A primary that stands still for 1.5 s is replaced.
      const longestMs = 800
      return { name, keepsData, longestMs, ...(await course(await clusterCourses.struckMaster(redis))) }
    },
    ports: async () => (await redis.masters()).map(({ port }) => port),
    end: () => redis.stop(),
  }
}
