import type { Redis } from 'ioredis'
import { half, interleave, median, ratios, sum } from '../measure.ts'
import { KEYS, type ToWorker, type WorkersLoad } from '../processes/messages.ts'
import { mainThreadSeconds } from '../redis/info.ts'
import { FIXED_WINDOW } from '../redis/scripts.ts'
import { connect, startOpenRedis } from '../redis/with-redis.ts'
import type { LinePlot } from '../report/plot.ts'
import type { Effort, Figure, Measured, Scenario } from '../scenario.ts'
import { startWorkers, type Worker } from '../workers.ts'

const COUNTS = [1, 2, 4]

const OURS = 'slidegate'
const FLOOR = 'EVALSHA `return 1`'
const SIDES = [OURS, FLOOR, FIXED_WINDOW.name]

interface Turn {
  /** Decisions per second of all processes. */
  readonly perSecond: number
  /** CPU time of Redis per decision. */
  readonly redisSeconds: number
}

export const processes: Scenario = {
  name: 'processes',
  title: `Throughput of 1, 2 and 4 processes on one Redis, ${KEYS.toLocaleString('en-US')} keys, 1,024 in flight each`,
  async run(effort): Promise<Measured> {
    const server = await startOpenRedis()
    const redis = connect(server.url)
    const module = new URL('../processes/worker.ts', import.meta.url)
    const workers = startWorkers<ToWorker, WorkersLoad>(module, Math.max(...COUNTS))
    try {
      await Promise.all(workers.map(({ ask }) => ask({ url: server.url })))
      const turns = await measure(redis, workers, effort)
      return { figures: figuresOf(turns), plots: plotsOf(turns) }
    } finally {
      for (const worker of workers) worker.end()
      redis.disconnect()
      await server.stop()
    }
  },
}

type Turns = Readonly<Record<string, readonly Turn[]>>

const labelOf = (side: string, count: number) => `${side}, ${count}`

async function measure(
  redis: Redis,
  workers: readonly Worker<ToWorker, WorkersLoad>[],
  { rounds, turnMs }: Effort,
): Promise<Turns> {
  const turn = async (side: string, count: number): Promise<Turn> => {
    const before = await mainThreadSeconds(redis)
    const loads = await Promise.all(workers.slice(0, count).map(({ ask }) => ask({ side, ms: turnMs })))
    const seconds = (await mainThreadSeconds(redis)) - before
    return {
      perSecond: sum(loads.map(({ requests, seconds }) => requests / seconds)),
      redisSeconds: seconds / sum(loads.map(({ requests }) => requests)),
    }
  }
  const sides = COUNTS.flatMap((count) => SIDES.map((side) => ({ side, count })))
  return interleave(
    Object.fromEntries(sides.map(({ side, count }) => [labelOf(side, count), () => turn(side, count)])),
    half(rounds),
  )
}

function figuresOf(turns: Turns): Figure[] {
  return COUNTS.flatMap((count): Figure[] => {
    const [ours, floor] = [turns[labelOf(OURS, count)]!, turns[labelOf(FLOOR, count)]!]
    const fixed = turns[labelOf(FIXED_WINDOW.name, count)]!
    const [ourRate, floorRate] = [ours.map(rateOf), floor.map(rateOf)]
    const [ourCpu, fixedCpu] = [ours.map(cpuOf), fixed.map(cpuOf)]
    const many = count === 1 ? '1 process' : `${count} processes`
    return [
      {
        name: `${many}: decisions per second, vs. ${FLOOR}`,
        value: median(ratios(ourRate, floorRate)),
        unit: 'x',
        spread: ratios(ourRate, floorRate),
        note: `${Math.round(median(ourRate) / 1000)}k/s vs. ${Math.round(median(floorRate) / 1000)}k/s`,
        raw: { slidegatePerSecond: ourRate, floorPerSecond: floorRate },
      },
      {
        name: `${many}: Redis CPU per decision, vs. the ${FIXED_WINDOW.name}`,
        value: median(ratios(ourCpu, fixedCpu)),
        unit: 'x',
        spread: ratios(ourCpu, fixedCpu),
        note: `${(median(ourCpu) * 1e6).toFixed(2)} µs vs. ${(median(fixedCpu) * 1e6).toFixed(2)} µs`,
        raw: { slidegateSeconds: ourCpu, fixedWindowSeconds: fixedCpu },
      },
    ]
  })
}

function plotsOf(turns: Turns): LinePlot[] {
  const plot = (name: string, title: string, label: string, of: (turn: Turn) => number): LinePlot => ({
    kind: 'lines',
    name,
    title,
    x: { label: 'processes' },
    y: { label },
    lines: SIDES.map((side) => ({
      label: side === FIXED_WINDOW.name ? `script: ${side}` : side,
      role: side === OURS ? 'ours' : side === FLOOR ? 'floor' : 'peer',
      points: COUNTS.map((count) => [count, median(turns[labelOf(side, count)]!.map(of))] as const),
    })),
  })
  const inThousands = (turn: Turn) => turn.perSecond / 1000
  const inMicroseconds = (turn: Turn) => turn.redisSeconds * 1e6
  return [
    plot('processes-rate', 'Decisions per second of all processes', 'thousands per second', inThousands),
    plot('processes-cpu', 'Redis CPU time per decision', 'µs', inMicroseconds),
  ]
}

function rateOf({ perSecond }: Turn): number {
  return perSecond
}

function cpuOf({ redisSeconds }: Turn): number {
  return redisSeconds
}
