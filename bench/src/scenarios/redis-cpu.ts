import type { Redis } from 'ioredis'
import { interleave, ratios, sum } from '../measure.ts'
import { COMMON_SCRIPTS, FIXED_WINDOW, ZSET_LOG } from '../redis/scripts.ts'
import { withRedis } from '../redis/with-redis.ts'
import type { BarPlot, LinePlot } from '../report/plot.ts'
import type { Effort, Figure, Measured, Scenario, Target } from '../scenario.ts'
import { slidegateCpuSide } from '../steady/ours.ts'
import { floorCpuSide, scriptCpuSide } from '../steady/sides.ts'
import { denied, EVERY_MS, steady, steadyHour, type Traffic } from '../steady/traffic.ts'
import { assertFull, type CpuSide, type CpuTurn } from '../steady/turn.ts'

const FLOOR = 'read and write 64 bytes'

/** Compares one side, by default ours, with another side. */
interface Comparison {
  readonly name: string
  readonly of?: string
  readonly with: string
  readonly target?: Target
}

const OURS = 'slidegate'
const VS_SCRIPTS: readonly Comparison[] = [
  { name: 'vs. the ZSET log', with: ZSET_LOG.name, target: { atMost: 0.45 } },
  { name: 'vs. the INCR fixed window', with: FIXED_WINDOW.name, target: { atMost: 1 } },
  { name: 'vs. reading and writing 64 bytes', with: FLOOR, target: { atMost: 2.2 } },
]
const THREE_WINDOWS = 'slidegate, three windows'

interface Setting {
  readonly name: string
  readonly outcome: Traffic['outcome']
  sides(redis: Redis): Promise<CpuSide[]>
  readonly comparisons: readonly Comparison[]
}

/** Compares one limit with common scripts and the floor. Targets apply to steady traffic. */
function vsScripts(traffic: Traffic, scripts = [FIXED_WINDOW, ZSET_LOG]): Setting {
  const { outcome, limit } = traffic
  const isSteady = outcome === 'admitted'
  return {
    name: `limit ${limit}, full windows, all ${outcome}`,
    outcome,
    async sides(redis) {
      const ours = await slidegateCpuSide(redis, OURS, traffic)
      const sides: CpuSide[] = [ours, await floorCpuSide(redis, ours.batchSize)]
      for (const script of scripts) sides.push(await scriptCpuSide(redis, script, traffic))
      return sides
    },
    comparisons: isSteady
      ? VS_SCRIPTS
      : VS_SCRIPTS.map((comparison) => ({ ...comparison, target: undefined })),
  }
}

const nameOf = (limit: number) => `slidegate ${limit}`

/** Compares limits of several sizes, and three windows with one. */
function growth(limits: readonly number[]): Setting {
  const trafficOf = (limit: number) => (limit < 10_000 ? steady(limit) : steadyHour(limit))
  return {
    name: 'full windows, all admitted',
    outcome: 'admitted',
    async sides(redis) {
      const sides: CpuSide[] = []
      // The largest limits come first: they take long to fill, and short windows filled before them would run empty in the
      // meantime.
      for (const limit of limits.toReversed()) {
        sides.push(await slidegateCpuSide(redis, nameOf(limit), trafficOf(limit)))
      }
      return [...sides, await slidegateCpuSide(redis, THREE_WINDOWS, steady(1000, [10, 100]))]
    },
    comparisons: [
      {
        name: 'windows of 10, 100 and 1,000 vs. 1,000 alone',
        of: THREE_WINDOWS,
        with: nameOf(1000),
        target: { atMost: 1.7 },
      },
      {
        name: 'limit 1,000,000 vs. 10',
        of: nameOf(1_000_000),
        with: nameOf(10),
        target: { atMost: 1.3 },
      },
    ],
  }
}

export const redisCpu: Scenario = {
  name: 'redis-cpu',
  title:
    'Redis CPU time per decision, 1,024 in flight, compared with common scripts and with reading and writing 64 bytes',
  async run(effort): Promise<Measured> {
    const isFull = effort.mode === 'full'
    const limit100 = vsScripts(steady(100), [...COMMON_SCRIPTS])
    const denied100 = vsScripts(denied(100), [...COMMON_SCRIPTS])
    const limits = isFull ? [10, 100, 1000, 10_000, 100_000, 1_000_000] : [10, 1000, 1_000_000]
    const grown = growth(limits)
    const others = isFull ? [10, 1000].flatMap((limit) => [steady(limit), denied(limit)]) : []
    const settings = [limit100, denied100, ...others.map((traffic) => vsScripts(traffic)), grown]
    const figures: Figure[] = []
    const plots: (BarPlot | LinePlot)[] = []
    for (const setting of settings) {
      const turns = await withRedis((redis) => measure(redis, setting, effort))
      figures.push(...setting.comparisons.map((comparison) => figureOf(setting, comparison, turns)))
      if (setting === limit100) plots.push(barsOf('redis-cpu-admitted', setting, turns))
      if (setting === denied100) plots.push(barsOf('redis-cpu-denied', setting, turns))
      if (setting === grown) plots.push(growthOf(limits, turns))
    }
    return { figures, plots }
  },
}

type Turns = ReadonlyMap<string, { readonly side: CpuSide; readonly turns: readonly CpuTurn[] }>

async function measure(redis: Redis, { outcome, sides: make }: Setting, effort: Effort): Promise<Turns> {
  const sides = await make(redis)
  const turns = await interleave(Object.fromEntries(sides.map((side) => [side.name, side.turn])), {
    ...effort.rounds,
    everyMs: outcome === 'admitted' ? EVERY_MS : 0,
  })
  for (const side of sides) {
    side.close()
    assertFull(turns[side.name]!)
  }
  return new Map(sides.map((side) => [side.name, { side, turns: turns[side.name]! }]))
}

function figureOf(setting: Setting, comparison: Comparison, all: Turns): Figure {
  const { name, of = OURS, with: other, target } = comparison
  const seconds = (side: string) => all.get(side)!.turns.map(({ seconds }) => seconds)
  const fullness = mean(all.get(of)!.turns.map(({ fullness }) => fullness))
  const [ours, theirs] = [seconds(of), seconds(other)]
  return {
    name: `${setting.name}: ${name}`,
    // Uses the mean, not the median, to include work that only some requests do, such as renewing a TTL.
    value: mean(ours) / mean(theirs),
    unit: 'x',
    target,
    spread: ratios(ours, theirs),
    note: `${inMicroseconds(ours)} vs. ${inMicroseconds(theirs)}; windows ${Math.round(fullness * 100)}% full, ${all.get(of)!.side.batchSize()} decisions per call`,
    raw: { [`${of} seconds`]: ours, [`${other} seconds`]: theirs },
  }
}

function barsOf(name: string, setting: Setting, all: Turns): BarPlot {
  return {
    kind: 'bars',
    name,
    title: `Redis CPU time per decision: ${setting.name}`,
    axis: { label: 'µs' },
    series: [''],
    bars: Array.from(all.values(), ({ side: { name, role }, turns }) => ({
      label: role === 'peer' ? `script: ${name}` : name,
      role,
      values: [mean(turns.map(({ seconds }) => seconds * 1e6))],
    })),
  }
}

function growthOf(limits: readonly number[], all: Turns): LinePlot {
  const points = limits.map((limit) => {
    const { turns } = all.get(nameOf(limit))!
    return [limit, mean(turns.map(({ seconds }) => seconds * 1e6))] as const
  })
  return {
    kind: 'lines',
    name: 'redis-cpu-limits',
    title: 'Redis CPU time per decision, full windows, all admitted',
    x: { label: 'limit', isLog: true },
    y: { label: 'µs' },
    lines: [{ label: 'slidegate', role: 'ours', points }],
  }
}

function mean(numbers: readonly number[]): number {
  return sum(numbers) / numbers.length
}

function inMicroseconds(seconds: readonly number[]): string {
  return `${(mean(seconds) * 1e6).toFixed(2)} µs`
}
