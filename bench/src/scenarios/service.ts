import assert from 'node:assert/strict'
import type { StoreConfig } from '../../../packages/server/src/config/schema.ts'
import type { LoadResult, Posts } from '../http/generator.ts'
import { type Generator, startGenerator } from '../http/servers.ts'
import { interleave, median, ratios } from '../measure.ts'
import { withRedis } from '../redis/with-redis.ts'
import type { BarPlot } from '../report/plot.ts'
import type { Effort, Figure, Measured, Scenario, Target, Unit } from '../scenario.ts'
import type { GrpcLoadRequest } from '../service/grpc-generator.ts'
import { CONSTANT_PATH, type Ports, type ToService } from '../service/messages.ts'
import { startWorkers, type Worker } from '../workers.ts'

const KEYS = 1000
const IN_FLIGHT = 64
const MANY = 64
const WARM_UP_TURNS = 3

const ONE: Posts = { path: '/v1/consume', limiter: 'api' }
const ALL: Posts = { ...ONE, perCall: MANY }
const CONSTANT: Posts = { path: CONSTANT_PATH, limiter: 'api' }

interface Turn extends LoadResult {
  readonly callsPerSecond: number
  /** CPU time of the service per call. */
  readonly cpuSeconds: number
}

interface Generators {
  readonly http: Generator
  readonly grpc: Worker<GrpcLoadRequest, LoadResult>
}

export const service: Scenario = {
  name: 'service',
  title: `The service in one process, ${IN_FLIGHT} calls in flight, ${KEYS} keys, compared with the same server sending a constant response`,
  async run(effort): Promise<Measured> {
    const grpc = new URL('../service/grpc-generator.ts', import.meta.url)
    const generators = {
      http: startGenerator(),
      grpc: startWorkers<GrpcLoadRequest, LoadResult>(grpc, 1)[0]!,
    }
    const figures = await withRedis(async (redis) => {
      const onRedis = { redis: { url: `redis://127.0.0.1:${redis.options.port}` } }
      return [
        ...(await measure(generators, 'on Redis', onRedis, effort)),
        ...(await measure(generators, 'in memory', { memory: {} }, effort)),
      ]
    })
    for (const generator of Object.values(generators)) generator.end()
    const plots = [
      plotOf('calls per second', 'service-calls', 'thousands per second', 1e-3, figures),
      plotOf('p99', 'service-p99', 'ms', 1, figures),
    ]
    return { figures, plots }
  },
}

async function measure(
  generators: Generators,
  where: string,
  store: StoreConfig,
  { turnMs, rounds }: Effort,
): Promise<Figure[]> {
  const module = new URL('../service/server.ts', import.meta.url)
  const worker = startWorkers<ToService, Ports | number>(module, 1)[0]!
  const ports = (await worker.ask({ store })) as Ports
  const turn = async (load: () => Promise<LoadResult>): Promise<Turn> => {
    const before = (await worker.ask('cpu seconds')) as number
    const result = await load()
    const after = (await worker.ask('cpu seconds')) as number
    assert.deepEqual(Object.keys(result.statuses), ['200'], 'all requests are admitted')
    const { requests, seconds } = result
    return { ...result, callsPerSecond: requests / seconds, cpuSeconds: (after - before) / requests }
  }
  const byHttp = (posts: Posts) => (ms: number) =>
    turn(() => generators.http.ask({ port: ports.http, connections: IN_FLIGHT, users: KEYS, posts, ms }))
  const byGrpc = (port: number) => (ms: number) =>
    turn(() => generators.grpc.ask({ port, inFlight: IN_FLIGHT, users: KEYS, ms }))
  const sides = {
    one: byHttp(ONE),
    many: byHttp(ALL),
    constant: byHttp(CONSTANT),
    grpc: byGrpc(ports.grpc),
    constantGrpc: byGrpc(ports.constantGrpc),
  }
  for (const side of Object.values(sides)) await side(WARM_UP_TURNS * turnMs)
  const turns = await interleave(
    {
      one: () => sides.one(turnMs),
      many: () => sides.many(turnMs),
      constant: () => sides.constant(turnMs),
      grpc: () => sides.grpc(turnMs),
      constantGrpc: () => sides.constantGrpc(turnMs),
    },
    rounds,
  )
  worker.end()
  const { one, many, constant, grpc, constantGrpc } = turns
  return [
    ...against(`HTTP, ${where}`, one, constant),
    ...against(`gRPC, ${where}`, grpc, constantGrpc),
    figureOf(
      `HTTP, ${where}: decisions per second, ${MANY} per call vs. one`,
      many.map((each) => MANY * each.callsPerSecond),
      one.map((each) => each.callsPerSecond),
      thousands,
      { atLeast: 5 },
    ),
  ]
}

function against(name: string, ours: readonly Turn[], constant: readonly Turn[]): Figure[] {
  const figure = (
    what: string,
    of: (turn: Turn) => number,
    format: (value: number) => string,
    target?: Target,
  ) => figureOf(`${name}: ${what}`, ours.map(of), constant.map(of), format, target)
  return [
    figure('calls per second', ({ callsPerSecond }) => callsPerSecond, thousands, { atLeast: 0.8 }),
    figure('p99', ({ p99Ms }) => p99Ms, milliseconds, { atMost: 2 }),
    figure('service CPU per call', ({ cpuSeconds }) => cpuSeconds, microseconds),
  ]
}

/** Plots the service and the constant response, by protocol and store. */
function plotOf(
  what: string,
  name: string,
  label: string,
  scale: number,
  figures: readonly Figure[],
): BarPlot {
  const shown = figures.filter((figure) => figure.name.endsWith(`: ${what}`))
  return {
    kind: 'bars',
    name,
    title: `The service, ${IN_FLIGHT} calls in flight: ${what}`,
    axis: { label },
    series: ['slidegate', 'constant response'],
    bars: shown.map(({ name, raw }) => ({
      label: name.slice(0, -`: ${what}`.length),
      role: 'ours',
      values: [scale * median(raw.ours!), scale * median(raw.theirs!)],
    })),
  }
}

const thousands = (value: number) => `${(value / 1000).toFixed(1)}k`
const milliseconds = (value: number) => `${value.toFixed(1)} ms`
const microseconds = (value: number) => `${(value * 1e6).toFixed(1)} µs`

function figureOf(
  name: string,
  ours: readonly number[],
  theirs: readonly number[],
  format: (value: number) => string,
  target?: Target,
): Figure {
  const spread = ratios(ours, theirs)
  const unit: Unit = 'x'
  return {
    name,
    value: median(spread),
    unit,
    ...(target && { target }),
    spread,
    note: `${format(median(ours))} vs. ${format(median(theirs))}`,
    raw: { ours, theirs },
  }
}
