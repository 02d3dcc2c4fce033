import type { Redis } from 'ioredis'
import { callers } from '../callers.ts'
import { boundToCores, type Cores } from '../cores.ts'
import { inMicroseconds, inThousands } from '../format.ts'
import { clientCpuOf, perSecond } from '../load.ts'
import { median, ratios } from '../measure.ts'
import type { Policy } from '../peers/peer.ts'
import { batchedFloor } from '../redis/batched-floor.ts'
import { evalshaFloor } from '../redis/floor.ts'
import { withRedis } from '../redis/with-redis.ts'
import type { Bar, BarPlot } from '../report/plot.ts'
import type { Effort, Figure, Measured, Scenario, Target } from '../scenario.ts'
import { floorSide, type Outcome, slidegateSide } from '../sides.ts'
import { type Turns, takeTurns } from '../turns.ts'

interface Setting {
  readonly name: string
  readonly keys: number
  readonly inFlight: number
  readonly policy: Policy
  readonly outcome: Outcome
  /** The value to compare. With one request in flight, it's the time per decision, otherwise decisions per second. */
  readonly compares: 'rate' | 'time'
  /** Cores of client and Redis with `--pin`. */
  readonly cores: Cores
  /** The target, compared with an EVALSHA that does nothing. */
  readonly target: Target
  readonly isFullOnly?: boolean
}

const MANY = { keys: 10_000, compares: 'rate', cores: 'apart' } as const
const HOT = { keys: 1, compares: 'rate', cores: 'apart' } as const
const ALONE = { keys: 10_000, compares: 'time', cores: 'together' } as const

// Admitted requests have limits that are never reached, in windows short enough that charges expire. For denials, a limit is used
// up.
const ROOMY = { policy: { limit: 100, windowMs: 1000 }, outcome: 'admitted' } as const
const ROOMY_HOT = { policy: { limit: 10_000_000, windowMs: 1000 }, outcome: 'admitted' } as const
const USED_UP = { policy: { limit: 10, windowMs: 3_600_000 }, outcome: 'denied' } as const

const AT_1024 = { name: '10,000 keys, 1,024 in flight', inFlight: 1024, target: { atLeast: 3 } } as const
const AT_64 = { name: '10,000 keys, 64 in flight', inFlight: 64, target: { atLeast: 1.8 } } as const
const AT_1 = { name: '10,000 keys, one at a time', inFlight: 1, target: { atMost: 1.35 } } as const
const HOT_AT_1024 = { name: 'one hot key, 1,024 in flight', inFlight: 1024, target: { atLeast: 30 } } as const

const UNDER_LOAD: readonly Setting[] = [
  { ...AT_1024, ...MANY, ...ROOMY },
  { ...AT_1024, ...MANY, ...USED_UP },
  { ...AT_64, ...MANY, ...ROOMY },
  { ...AT_64, ...MANY, ...USED_UP, isFullOnly: true },
  { ...HOT_AT_1024, ...HOT, ...ROOMY_HOT },
  { ...HOT_AT_1024, ...HOT, ...USED_UP },
]

const ONE_AT_A_TIME: readonly Setting[] = [
  { ...AT_1, ...ALONE, ...ROOMY },
  { ...AT_1, ...ALONE, ...USED_UP },
]

type Titled = Pick<BarPlot, 'name' | 'title'>

const PLOT = {
  kind: 'bars',
  note: 'Pale bars show the upper bound for limiters that store state per key on this client. Requests share calls, and each request reads and writes back a small string without making a decision.',
  axis: { label: 'ratio to the EVALSHA', isLog: true },
  series: ['slidegate', 'batched read and write-back'],
  mark: { label: 'EVALSHA', value: 1 },
} as const

export const throughput: Scenario = {
  name: 'throughput',
  title: 'Throughput of one client under load, compared with one EVALSHA of `return 1` per request',
  run: (effort) =>
    measureAll(
      {
        name: 'throughput',
        title: 'Decisions per second, compared with one EVALSHA of `return 1` per request',
      },
      UNDER_LOAD,
      effort,
    ),
}

export const oneAtATime: Scenario = {
  name: 'one-at-a-time',
  title: 'Time per decision with one request in flight, compared with one EVALSHA of `return 1`',
  run: (effort) =>
    measureAll(
      { name: 'one-at-a-time', title: 'Time per decision, compared with one EVALSHA of `return 1`' },
      ONE_AT_A_TIME,
      effort,
    ),
}

async function measureAll(plot: Titled, settings: readonly Setting[], effort: Effort): Promise<Measured> {
  const figures: Figure[] = []
  const bars: Bar[] = []
  for (const setting of settings) {
    if (setting.isFullOnly && effort.mode !== 'full') continue
    const turns = await withRedis((redis, pid) => {
      const use = () => measure(redis, setting, effort)
      return effort.isPinned ? boundToCores(pid, setting.cores, use) : use()
    })
    const [speed, cpu, reachable] = figuresOf(setting, turns)
    figures.push(speed, cpu, reachable)
    bars.push({ label: nameOf(setting), role: 'ours', values: [speed.value, reachable.value] })
  }
  return { figures, plots: [{ ...PLOT, ...plot, bars }] }
}

async function measure(redis: Redis, setting: Setting, effort: Effort): Promise<Turns[]> {
  const { policy, outcome, inFlight } = setting
  const keys = callers(setting.keys)
  const sides = [
    await slidegateSide(redis, policy, keys, outcome),
    floorSide(await evalshaFloor(redis), keys),
    floorSide(await batchedFloor(redis, keys), keys),
  ]
  return takeTurns(redis, sides, inFlight, effort)
}

/** Returns figures for speed, client CPU, and the speed of the floor. */
function figuresOf(setting: Setting, [ours, floor, batch]: readonly Turns[]): [Figure, Figure, Figure] {
  const { compares, target, policy } = setting
  const name = nameOf(setting)
  const [ourCpu, floorCpu] = [ours!.turns.map(clientCpuOf), floor!.turns.map(clientCpuOf)]
  const cpu = ratios(ourCpu, floorCpu)
  const what = compares === 'rate' ? 'decisions per second' : 'time per decision'
  return [
    {
      ...speedOf(setting, ours!, floor!),
      name: `${name}: ${what}`,
      target,
      note: `${againstText(setting, ours!, floor!)}; limit ${policy.limit} per ${policy.windowMs} ms`,
    },
    {
      name: `${name}: client CPU per decision`,
      value: median(cpu),
      unit: 'x',
      spread: cpu,
      note: `${inMicroseconds(ourCpu)} vs. ${inMicroseconds(floorCpu)}`,
      raw: { slidegateSeconds: ourCpu, floorSeconds: floorCpu },
    },
    {
      ...speedOf(setting, batch!, floor!),
      name: `${name}: ${what}, batched read and write-back`,
      note: againstText(setting, batch!, floor!),
    },
  ]
}

function speedOf({ compares }: Setting, of: Turns, floor: Turns): Omit<Figure, 'name'> {
  const [rate, floorRate] = [of.turns.map(perSecond), floor.turns.map(perSecond)]
  const spread = compares === 'rate' ? ratios(rate, floorRate) : ratios(floorRate, rate)
  return {
    value: median(spread),
    unit: 'x',
    spread,
    raw: { perSecond: rate, floorPerSecond: floorRate },
  }
}

function againstText({ compares }: Setting, of: Turns, floor: Turns): string {
  const [rate, floorRate] = [of.turns.map(perSecond), floor.turns.map(perSecond)]
  return compares === 'rate'
    ? `${inThousands(rate)}/s vs. ${inThousands(floorRate)}/s`
    : `${inMicroseconds(rate.map(inverse))} vs. ${inMicroseconds(floorRate.map(inverse))}`
}

function nameOf({ name, outcome }: Setting): string {
  return `${name}, all ${outcome}`
}

function inverse(rate: number): number {
  return 1 / rate
}
