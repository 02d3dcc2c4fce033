import type { Redis } from 'ioredis'
import { callers } from '../callers.ts'
import { boundToCores } from '../cores.ts'
import { inMicroseconds, inThousands } from '../format.ts'
import { clientCpuOf, perSecond } from '../load.ts'
import { half, median, ratios } from '../measure.ts'
import type { Policy } from '../peers/peer.ts'
import { REDIS_PEERS } from '../peers/redis.ts'
import { batchedFloor } from '../redis/batched-floor.ts'
import { evalshaFloor, incrFloor, pingFloor } from '../redis/floor.ts'
import { COMMON_SCRIPTS } from '../redis/scripts.ts'
import { withRedis } from '../redis/with-redis.ts'
import type { BarPlot } from '../report/plot.ts'
import type { Effort, Figure, Measured, Scenario } from '../scenario.ts'
import { floorSide, type Outcome, peerSide, type Side, slidegateSide } from '../sides.ts'
import { type Turn, type Turns, takeTurns } from '../turns.ts'

interface Setting {
  readonly name: string
  /** The suffix of its plots' names. */
  readonly slug: string
  readonly keys: number
  readonly inFlight: number
  readonly policy: Policy
  readonly outcome: Outcome
}

const KEYS = 10_000
// This limit is never reached, and no window ends during a run: keys that expire would cost Redis time during other sides' turns.
const ROOMY: Policy = { limit: 1_000_000, windowMs: 600_000 }
const USED_UP: Policy = { limit: 3, windowMs: 3_600_000 }
// This window is shorter, so that the log of one key stops growing.
const ROOMY_HOT: Policy = { limit: 20_000_000, windowMs: 20_000 }

/** The only setting in short mode. */
const MAIN: Setting = {
  name: '10,000 keys, 1,024 in flight, all admitted',
  slug: 'keys-1024',
  keys: KEYS,
  inFlight: 1024,
  policy: ROOMY,
  outcome: 'admitted',
}

const OTHERS: readonly Setting[] = [
  {
    ...MAIN,
    name: '10,000 keys, 1,024 in flight, all denied',
    slug: 'denied-1024',
    policy: USED_UP,
    outcome: 'denied',
  },
  { ...MAIN, name: '10,000 keys, 64 in flight, all admitted', slug: 'keys-64', inFlight: 64 },
  { ...MAIN, name: '10,000 keys, one at a time, all admitted', slug: 'keys-1', inFlight: 1 },
  {
    ...MAIN,
    name: 'one hot key, 1,024 in flight, all admitted',
    slug: 'hot-key-1024',
    keys: 1,
    policy: ROOMY_HOT,
  },
]

const ONE_AT_A_TIME_NOTE =
  'A lone call takes several times as long if it has to wake another core. Without `--pin`, the choice of cores matters more than the limiter.'

/** The package with which client CPU is compared. */
const CPU_PEER = 'rate-limiter-flexible'

export const peers: Scenario = {
  name: 'peers',
  title: 'Throughput of one client, compared with other packages, common scripts and floors',
  async run(effort): Promise<Measured> {
    const figures: Figure[] = []
    const plots: BarPlot[] = []
    for (const setting of effort.mode === 'full' ? [MAIN, ...OTHERS] : [MAIN]) {
      const turns = await withRedis((redis, pid) => {
        const use = () => measure(redis, setting, effort)
        return effort.isPinned ? boundToCores(pid, setting.inFlight > 1 ? 'apart' : 'together', use) : use()
      })
      figures.push(...figuresOf(setting, turns))
      plots.push(...plotsOf(setting, turns))
    }
    return { figures, plots }
  },
}

async function measure(redis: Redis, setting: Setting, effort: Effort): Promise<Turns[]> {
  const { policy, outcome, inFlight } = setting
  const keys = callers(setting.keys)
  const sides: Side[] = [await slidegateSide(redis, policy, keys, outcome)]
  for (const floor of [
    await evalshaFloor(redis),
    pingFloor(redis),
    incrFloor(redis),
    await batchedFloor(redis, keys),
  ]) {
    sides.push(floorSide(floor, keys))
  }
  for (const peer of REDIS_PEERS.filter(({ isSlow }) => !isSlow || setting === MAIN)) {
    sides.push(await peerSide(peer.name, await peer.open(redis, policy), policy, keys, outcome))
  }
  for (const script of COMMON_SCRIPTS) {
    const name = `script: ${script.name}`
    sides.push(await peerSide(name, await script.open(redis, policy), policy, keys, outcome))
  }
  return takeTurns(redis, sides, inFlight, { ...effort, rounds: half(effort.rounds) })
}

function figuresOf(setting: Setting, all: readonly Turns[]): Figure[] {
  const { name } = setting
  const isMain = setting === MAIN
  const of = (peer: string) => all.find(({ side }) => side.name === peer)?.turns ?? []
  const ours = of('slidegate')
  const packages = new Set(REDIS_PEERS.map(({ name }) => name))
  const rates = all
    .filter(({ side }) => packages.has(side.name))
    .map(({ side, turns }) => ({ name: side.name, rate: turns.map(perSecond) }))
  const fastest = rates.reduce((a, b) => (median(b.rate) > median(a.rate) ? b : a))
  const ourRate = ours.map(perSecond)
  const speed = ratios(ourRate, fastest.rate)

  const [ourCpu, peerCpu] = [ours.map(clientCpuOf), of(CPU_PEER).map(clientCpuOf)]
  const cpu = ratios(ourCpu, peerCpu)
  const raw = (unit: string, of: (turn: Turn) => number) =>
    Object.fromEntries(all.map(({ side, turns }) => [`${side.name}, ${unit}`, turns.map(of)]))
  return [
    {
      name: `${name}: decisions per second, vs. the fastest package`,
      value: median(speed),
      unit: 'x',
      target: isMain ? { atLeast: 3 } : undefined,
      spread: speed,
      note: `${inThousands(ourRate)}/s vs. ${inThousands(fastest.rate)}/s of ${fastest.name}`,
      raw: raw('per second', perSecond),
    },
    {
      name: `${name}: client CPU per decision, vs. ${CPU_PEER}`,
      value: median(cpu),
      unit: 'x',
      target: isMain ? { atMost: 0.2 } : undefined,
      spread: cpu,
      note: `${inMicroseconds(ourCpu)} vs. ${inMicroseconds(peerCpu)}`,
      raw: {
        ...raw('client seconds', clientCpuOf),
        ...raw('Redis seconds', ({ redisSeconds }) => redisSeconds),
      },
    },
  ]
}

function plotsOf(setting: Setting, all: readonly Turns[]): BarPlot[] {
  const bars = (what: string, title: string, label: string, of: (turn: Turn) => number): BarPlot => ({
    kind: 'bars',
    note: setting.inFlight === 1 ? ONE_AT_A_TIME_NOTE : undefined,
    name: `${what}-${setting.slug}`,
    title: `${title}: ${setting.name}`,
    axis: { label },
    series: [''],
    bars: all.map(({ side, turns }) => ({
      label: side.name,
      role: side.role,
      values: [median(turns.map(of))],
    })),
  })
  const rate = bars('rate', 'Decisions per second', 'thousands per second', (turn) => perSecond(turn) / 1000)
  if (setting !== MAIN) return [rate]
  return [
    rate,
    bars('client-cpu', 'Client CPU time per decision', 'µs', (turn) => clientCpuOf(turn) * 1e6),
    bars('server-cpu', 'Redis CPU time per decision', 'µs', ({ redisSeconds }) => redisSeconds * 1e6),
  ]
}
