import { Cluster } from 'ioredis'
import { allowAll } from '../../../packages/slidegate/test/support/access.ts'
import { startCluster } from '../../../packages/slidegate/test/support/redis-cluster.ts'
import { callers } from '../callers.ts'
import { inMicroseconds, inThousands } from '../format.ts'
import { clientCpuOf, perSecond } from '../load.ts'
import { interleave, median, ratios } from '../measure.ts'
import type { Policy } from '../peers/peer.ts'
import type { Floor } from '../redis/floor.ts'
import type { Effort, Figure, Scenario } from '../scenario.ts'
import { floorSide, type Outcome, slidegateSide } from '../sides.ts'

const KEYS = 10_000
const IN_FLIGHT = 1024

const SETTINGS: readonly { readonly outcome: Outcome; readonly policy: Policy }[] = [
  { outcome: 'admitted', policy: { limit: 100, windowMs: 1000 } },
  { outcome: 'denied', policy: { limit: 10, windowMs: 3_600_000 } },
]

export const cluster: Scenario = {
  name: 'cluster',
  title:
    'Throughput of one client on a Cluster with three primaries, compared with one EVALSHA of `return 1` per request',
  async run(effort) {
    const servers = await startCluster({ masters: 3, replicas: 0 })
    await Promise.all(servers.nodes.map(({ port }) => allowAll(port)))
    const client = new Cluster(servers.nodes.map(({ port }) => ({ host: '127.0.0.1', port })))
    try {
      const figures: Figure[] = []
      for (const setting of SETTINGS) {
        figures.push(...(await measure(client, setting, effort)))
        await Promise.all(client.nodes('master').map((node) => node.flushall()))
      }
      return figures
    } finally {
      client.disconnect()
      await servers.stop()
    }
  },
}

async function measure(
  client: Cluster,
  { outcome, policy }: (typeof SETTINGS)[number],
  { rounds, turnMs }: Effort,
): Promise<Figure[]> {
  const keys = callers(KEYS)
  const ours = await slidegateSide(client, policy, keys, outcome)
  const floor = floorSide(await clusterFloor(client), keys)
  const turns = await interleave(
    {
      ours: () => ours.load(IN_FLIGHT, { ms: turnMs }),
      floor: () => floor.load(IN_FLIGHT, { ms: turnMs }),
    },
    rounds,
  )
  await ours.close?.()
  const [rate, floorRate] = [turns.ours.map(perSecond), turns.floor.map(perSecond)]
  const [cpu, floorCpu] = [turns.ours.map(clientCpuOf), turns.floor.map(clientCpuOf)]
  const [speeds, cpus] = [ratios(rate, floorRate), ratios(cpu, floorCpu)]
  const name = `10,000 keys, 1,024 in flight, all ${outcome}`
  return [
    {
      name: `${name}: decisions per second`,
      value: median(speeds),
      unit: 'x',
      target: { atLeast: 1.8 },
      spread: speeds,
      note: `${inThousands(rate)}/s vs. ${inThousands(floorRate)}; limit ${policy.limit} per ${policy.windowMs} ms`,
      raw: { perSecond: rate, floorPerSecond: floorRate },
    },
    {
      name: `${name}: client CPU per decision`,
      value: median(cpus),
      unit: 'x',
      spread: cpus,
      note: `${inMicroseconds(cpu)} vs. ${inMicroseconds(floorCpu)}`,
      raw: { slidegateSeconds: cpu, floorSeconds: floorCpu },
    },
  ]
}

/** Uses keys without a common tag, so that they are on all nodes. */
async function clusterFloor(client: Cluster): Promise<Floor> {
  await client.ping()
  const loaded = await Promise.all(client.nodes('master').map((node) => node.script('LOAD', 'return 1')))
  const sha1 = loaded[0] as string
  return {
    name: 'EVALSHA `return 1`',
    // The floor's tag would put all keys into one slot.
    ask: (key) => client.evalsha(sha1, 1, key.replace('{0}', '0')),
    isAnswer: (answer) => answer === 1,
  }
}
