import assert from 'node:assert/strict'
import type { Redis } from 'ioredis'
import type { FloodedApp } from '../flood/server.ts'
import type { LoadResult, Posts } from '../http/generator.ts'
import { type Generator, startGenerator } from '../http/servers.ts'
import { half, interleave, median, type Rounds, ratios } from '../measure.ts'
import type { Policy } from '../peers/peer.ts'
import { mainThreadSeconds } from '../redis/info.ts'
import { withRedis } from '../redis/with-redis.ts'
import type { BarPlot } from '../report/plot.ts'
import type { Figure, Measured, Scenario } from '../scenario.ts'
import type { Ports, ToService } from '../service/messages.ts'
import { PATIENCE_MS } from '../sides.ts'
import { startWorkers, type Worker } from '../workers.ts'

/** More than a user sends in a turn, and far less than the flood. The service's window is a minute. */
const POLICY: Policy = { limit: 100, windowMs: 3_600_000 }

/** Connections of the flood. Each sends its next request as soon as it gets a response. */
const FLOOD_CONNECTIONS = 64

const USERS = 40
const USERS_PER_SECOND = 400

/** A round takes 7 s in the short form. */
const SHORT_ROUNDS: Rounds = { warmUps: 0, rounds: 2 }

/** The length of a load, in turns. Short loads have too few requests of users for a p99. */
const TURNS = 4

const BARE = 'Express, no limiter'
const UNCACHED = { redis: 'Express on Redis', service: 'Express on a service' } as const
const CACHED = { redis: 'Express on Redis, deny cache', service: 'Express on a service, deny cache' } as const
const SERVICE = 'service on Redis'

/** A server that takes the flood. */
interface Target {
  readonly port: number
  readonly posts?: Posts
}

interface Turn {
  /** Requests of the flood per second. All are denied if there is a limiter. */
  readonly perSecond: number
  readonly p99BeforeMs: number
  readonly p99DuringMs: number
  /** Share of a core that Redis uses during the flood. */
  readonly redisPercent: number
}

interface Generators {
  readonly attacker: Generator
  readonly users: Generator
}

export const flood: Scenario = {
  name: 'flood',
  title: `A caller over its limit sends requests on ${FLOOD_CONNECTIONS} connections, while ${USERS} users send ${USERS_PER_SECOND} requests per second, compared with an app without a limiter`,
  run: ({ mode, turnMs, rounds: usual }) =>
    withRedis(async (redis) => {
      const redisPort = redis.options.port!
      const rounds = mode === 'short' ? SHORT_ROUNDS : usual
      const workers: Worker<never, unknown>[] = []
      const started = <Message, Answer>(path: string) => {
        const worker = startWorkers<Message, Answer>(new URL(path, import.meta.url), 1)[0]!
        workers.push(worker)
        return worker
      }
      const service = started<ToService, Ports>('../service/server.ts')
      const { http } = await service.ask({
        store: { redis: { url: `redis://127.0.0.1:${redisPort}` }, timeoutMs: PATIENCE_MS },
        limit: POLICY.limit,
      })
      const app = async (
        name: string,
        more: Pick<FloodedApp, 'store' | 'isCached'> = {},
      ): Promise<Target> => ({
        port: await started<FloodedApp, number>('../flood/server.ts').ask({ name, ...POLICY, ...more }),
      })
      const [onRedis, onService] = [{ redis: redisPort }, { service: http }]
      const targets: Readonly<Record<string, Target>> = {
        [BARE]: await app('bare'),
        [UNCACHED.redis]: await app('redis', { store: onRedis }),
        [CACHED.redis]: await app('redis-cached', { store: onRedis, isCached: true }),
        [SERVICE]: { port: http, posts: { path: '/v1/consume', limiter: 'api' } },
        [UNCACHED.service]: await app('service', { store: onService }),
        [CACHED.service]: await app('service-cached', { store: onService, isCached: true }),
      }

      const generators: Generators = { attacker: startGenerator(), users: startGenerator() }
      workers.push(...Object.values(generators))
      const ms = TURNS * turnMs
      let turn = 0
      const sides = Object.entries(targets).map(([name, target]) => {
        const status = name === BARE ? 200 : 429
        return [name, () => takeTurn(redis, generators, target, `user:${++turn}`, ms, status)] as const
      })
      // Compiles the code, and uses up the limit.
      for (const target of Object.values(targets)) await attack(generators.attacker, target, ms)
      const turns = await interleave(Object.fromEntries(sides), half(rounds))
      for (const worker of workers) worker.end()
      return measured(turns)
    }),
}

async function takeTurn(
  redis: Redis,
  { attacker, users }: Generators,
  target: Target,
  prefix: string,
  ms: number,
  floodStatus: 200 | 429,
): Promise<Turn> {
  const load = { ...target, connections: USERS, users: prefix, perSecond: USERS_PER_SECOND, ms }
  const before = await users.ask(load)
  const redisBefore = await mainThreadSeconds(redis)
  const [flooding, during] = await Promise.all([attack(attacker, target, ms), users.ask(load)])
  const redisSeconds = (await mainThreadSeconds(redis)) - redisBefore
  for (const { statuses } of [before, during]) assert.deepEqual(Object.keys(statuses), ['200'])
  // The service's window slides on during the run, and then admits some requests of the flood.
  const { requests, seconds, statuses } = flooding
  assert.equal((statuses[200] ?? 0) + (statuses[429] ?? 0), requests, 'all requests are decided')
  return {
    perSecond: (statuses[floodStatus] ?? 0) / seconds,
    p99BeforeMs: before.p99Ms,
    p99DuringMs: during.p99Ms,
    redisPercent: (100 * redisSeconds) / seconds,
  }
}

/** Sends requests for one key, as fast as the server answers them. */
function attack(attacker: Generator, target: Target, ms: number): Promise<LoadResult> {
  return attacker.ask({ ...target, connections: FLOOD_CONNECTIONS, users: 1, ms })
}

function measured(turns: Readonly<Record<string, readonly Turn[]>>): Measured {
  const rates = (side: string) => turns[side]!.map(({ perSecond }) => perSecond)
  const limited = Object.keys(turns).filter((side) => side !== BARE)
  const figures: Figure[] = [
    ...limited.map((side) =>
      figureOf(
        `${side}: denied per second, vs. served without a limiter`,
        rates(side),
        rates(BARE),
        thousands,
      ),
    ),
    ...(['redis', 'service'] as const).map((store) =>
      figureOf(
        `${UNCACHED[store]}: denied per second with a deny cache, vs. without`,
        rates(CACHED[store]),
        rates(UNCACHED[store]),
        thousands,
      ),
    ),
    ...Object.entries(turns).map(([side, each]) =>
      figureOf(
        `${side}: p99 of users during the flood, vs. before`,
        each.map(({ p99DuringMs }) => p99DuringMs),
        each.map(({ p99BeforeMs }) => p99BeforeMs),
        milliseconds,
      ),
    ),
    ...limited.map((side): Figure => {
      const spread = turns[side]!.map(({ redisPercent }) => redisPercent)
      return { name: `${side}: CPU of Redis`, value: median(spread), unit: '%', spread, raw: { spread } }
    }),
  ]
  return { figures, plots: [ratePlot(turns), p99Plot(turns)] }
}

function figureOf(
  name: string,
  above: readonly number[],
  below: readonly number[],
  format: (value: number) => string,
): Figure {
  const spread = ratios(above, below)
  return {
    name,
    value: median(spread),
    unit: 'x',
    spread,
    note: `${format(median(above))} vs. ${format(median(below))}`,
    raw: { above, below },
  }
}

const thousands = (value: number) => `${(value / 1000).toFixed(1)}k`
const milliseconds = (value: number) => `${value.toFixed(1)} ms`

function ratePlot(turns: Readonly<Record<string, readonly Turn[]>>): BarPlot {
  return {
    kind: 'bars',
    name: 'flood-rate',
    title: 'A flood by one caller: denied requests per second, one process',
    axis: { label: 'thousands per second' },
    series: [''],
    bars: Object.entries(turns).map(([side, each]) => ({
      label: side === BARE ? `${side}: served` : side,
      role: side === BARE ? 'floor' : 'ours',
      values: [median(each.map(({ perSecond }) => perSecond)) / 1000],
    })),
  }
}

function p99Plot(turns: Readonly<Record<string, readonly Turn[]>>): BarPlot {
  return {
    kind: 'bars',
    name: 'flood-p99',
    title: 'p99 of well-behaved users, during a flood by another caller and before',
    axis: { label: 'ms' },
    series: ['during the flood', 'before'],
    bars: Object.entries(turns).map(([side, each]) => ({
      label: side,
      role: side === BARE ? 'floor' : 'ours',
      values: [
        median(each.map(({ p99DuringMs }) => p99DuringMs)),
        median(each.map(({ p99BeforeMs }) => p99BeforeMs)),
      ],
    })),
  }
}
