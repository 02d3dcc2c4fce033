import type { Redis } from 'ioredis'
import { fullPoint, type Point, roomyPoint, type Turn } from '../growth/points.ts'
import { clientCpuOf, perSecond } from '../load.ts'
import { half, interleave, median, ratios } from '../measure.ts'
import { withRedis } from '../redis/with-redis.ts'
import type { Line, LinePlot } from '../report/plot.ts'
import type { Effort, Figure, Measured, Scenario } from '../scenario.ts'

const HOUR_MS = 3_600_000

/** A parameter that grows, with all others fixed. */
interface Axis {
  readonly slug: string
  readonly name: string
  readonly label: string
  readonly isLog: boolean
  readonly values: Readonly<Record<Effort['mode'], readonly number[]>>
  /** Whether all values have the same traffic per key, so that memory is comparable. */
  readonly isWeighed: boolean
  point(redis: Redis, x: number, turnMs: number): Promise<Point>
}

const AXES: readonly Axis[] = [
  {
    slug: 'limit',
    name: 'limit, full one-hour windows, all denied',
    label: 'limit',
    isLog: true,
    values: { short: [10, 1000, 100_000], full: [10, 100, 1000, 10_000, 100_000, 1_000_000] },
    isWeighed: true,
    point: (redis, limit) => fullPoint(redis, limit, limit, HOUR_MS),
  },
  {
    slug: 'window',
    name: 'window, limit 10,000, full windows, all denied',
    label: 'window, seconds',
    isLog: true,
    values: { short: [60, 86_400], full: [60, 600, 3600, 86_400, 30 * 86_400] },
    isWeighed: true,
    point: (redis, seconds) => fullPoint(redis, seconds, 10_000, seconds * 1000),
  },
  {
    slug: 'keys',
    name: 'number of keys, all admitted',
    label: 'keys',
    isLog: true,
    // With fewer keys, requests for one key share a batch.
    values: { short: [2000, 100_000], full: [2000, 10_000, 100_000, 1_000_000] },
    isWeighed: false,
    point: (redis, keys, turnMs) => roomyPoint(redis, keys, { keys, turnMs }),
  },
  {
    slug: 'cost',
    name: 'cost, all admitted',
    label: 'units per request',
    isLog: true,
    values: { short: [1, 1000], full: [1, 10, 100, 1000, 10_000] },
    isWeighed: true,
    point: (redis, cost, turnMs) => roomyPoint(redis, cost, { cost, turnMs }),
  },
  {
    slug: 'limits',
    name: 'number of limits, all admitted',
    label: 'limits per request',
    isLog: false,
    values: { short: [1, 3, 5], full: [1, 2, 3, 4, 5] },
    isWeighed: true,
    point: (redis, windows, turnMs) => roomyPoint(redis, windows, { windows, turnMs }),
  },
]

export const growth: Scenario = {
  name: 'growth',
  title: 'Growth of time, CPU and memory per decision, with 1,024 requests in flight',
  async run(effort): Promise<Measured> {
    const figures: Figure[] = []
    const plots: LinePlot[] = []
    for (const axis of AXES) {
      const grown = await withRedis((redis) => measure(redis, axis, effort))
      figures.push(...grown.figures)
      plots.push(grown.plot)
    }
    return { figures, plots }
  },
}

async function measure(
  redis: Redis,
  axis: Axis,
  effort: Effort,
): Promise<{ figures: Figure[]; plot: LinePlot }> {
  const points: Point[] = []
  for (const x of axis.values[effort.mode]) points.push(await axis.point(redis, x, effort.turnMs / 2))
  const turns = await interleave(
    Object.fromEntries(points.map((point) => [point.x, point.turn])),
    half(effort.rounds),
  )
  const bytes: number[] = []
  for (const point of points) bytes.push(await point.bytes())
  for (const point of points) point.close()

  const line = (label: string, of: (turn: Turn) => number, role?: Line['role']): Line => ({
    label,
    role,
    points: points.map(({ x }) => [x, median(turns[x]!.map(of)) * 1e6]),
  })
  const lines = [
    line('Redis CPU', redisSecondsOf, 'ours'),
    line('client CPU', ({ load }) => clientCpuOf(load)),
    line('time at full load', ({ load }) => 1 / perSecond(load)),
  ]
  return {
    figures: [cpuFigure(axis, turns), ...(axis.isWeighed ? [bytesFigure(axis, points, bytes)] : [])],
    plot: {
      kind: 'lines',
      name: `growth-${axis.slug}`,
      title: `One decision, by ${axis.name}`,
      x: { label: axis.label, isLog: axis.isLog },
      y: { label: 'µs per decision' },
      lines,
    },
  }
}

function cpuFigure({ name, label }: Axis, turns: Readonly<Record<string, readonly Turn[]>>): Figure {
  const values = Object.keys(turns).map(Number)
  const [least, greatest] = [Math.min(...values), Math.max(...values)]
  const cpu = (x: number) => turns[x]!.map(redisSecondsOf)
  const inMicroseconds = (x: number) => `${(median(cpu(x)) * 1e6).toFixed(2)} µs`
  const grown = ratios(cpu(greatest), cpu(least))
  return {
    name: `${name}: Redis CPU, largest vs. smallest`,
    value: median(grown),
    unit: 'x',
    spread: grown,
    note: `${label}: ${withCommas(greatest)} vs. ${withCommas(least)}; ${inMicroseconds(greatest)} vs. ${inMicroseconds(least)}`,
    raw: Object.fromEntries(values.map((x) => [`${x}, seconds`, cpu(x)])),
  }
}

function bytesFigure({ name }: Axis, points: readonly Point[], bytes: readonly number[]): Figure {
  return {
    name: `${name}: memory per key, largest vs. smallest`,
    value: bytes.at(-1)! / bytes[0]!,
    unit: 'x',
    note: points.map(({ x }, i) => `${withCommas(x)}: ${withCommas(bytes[i]!)} bytes`).join('; '),
    raw: { bytes },
  }
}

function withCommas(value: number): string {
  return value.toLocaleString('en-US')
}

function redisSecondsOf({ redisSeconds }: Turn): number {
  return redisSeconds
}
