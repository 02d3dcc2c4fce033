import assert from 'node:assert/strict'
import type { Config } from '../../../packages/server/src/config/schema.ts'
import type { Posts } from '../http/generator.ts'
import { type Generator, startGenerator } from '../http/servers.ts'
import { interleave, median, ratios } from '../measure.ts'
import { withRedis } from '../redis/with-redis.ts'
import type { Effort, Figure, Scenario, Target, Unit } from '../scenario.ts'
import type { ToService } from '../service/server.ts'
import { startWorkers } from '../workers.ts'

/** No key comes near it: what is measured is the cost of letting pass. */
const LIMITERS: Config['limiters'] = {
  api: { limits: [{ kind: 'slidingWindow', limit: 1_000_000, window: '1m' }] },
}

const KEYS = 1000
const CONNECTIONS = 64
const MANY = 64
const WARM_UP_TURNS = 3

const SIDES = {
  one: { path: '/v1/consume', limiter: 'api' },
  many: { path: '/v1/consume', limiter: 'api', perCall: MANY },
  constant: { path: '/constant', limiter: 'api' },
} satisfies Record<string, Posts>

interface Turn {
  readonly decisionsPerSecond: number
  readonly callsPerSecond: number
  readonly p99Ms: number
  /** CPU time of the service per call. */
  readonly cpuSeconds: number
}

export const service: Scenario = {
  name: 'service',
  title: `The service over HTTP: one process, ${CONNECTIONS} connections, ${KEYS} keys, against the same server that answers a constant`,
  async run(effort): Promise<readonly Figure[]> {
    const generator = startGenerator()
    const figures = await withRedis(async (redis) => {
      const store = { redis: { url: `redis://127.0.0.1:${redis.options.port}` } }
      return [
        ...(await measure(generator, 'on Redis', { limiters: LIMITERS, store }, effort)),
        ...(await measure(generator, 'in memory', { limiters: LIMITERS, store: { memory: {} } }, effort)),
      ]
    })
    generator.end()
    return figures
  },
}

async function measure(
  generator: Generator,
  where: string,
  config: Config,
  { turnMs, rounds }: Effort,
): Promise<Figure[]> {
  const module = new URL('../service/server.ts', import.meta.url)
  const worker = startWorkers<ToService, number>(module, 1)[0]!
  const port = await worker.ask({ config: { ...config, listen: { http: '127.0.0.1:0' } } })
  const turn = async (posts: Posts, ms: number): Promise<Turn> => {
    const before = await worker.ask('cpu seconds')
    const answered = await generator.ask({ port, connections: CONNECTIONS, users: KEYS, posts, ms })
    const after = await worker.ask('cpu seconds')
    assert.deepEqual(Object.keys(answered.statuses), ['200'], 'all requests are let pass')
    const callsPerSecond = answered.requests / answered.seconds
    return {
      callsPerSecond,
      decisionsPerSecond: callsPerSecond * (posts.perCall ?? 1),
      p99Ms: answered.p99Ms,
      cpuSeconds: (after - before) / answered.requests,
    }
  }
  for (const posts of Object.values(SIDES)) await turn(posts, WARM_UP_TURNS * turnMs)
  const turns = await interleave(
    {
      one: () => turn(SIDES.one, turnMs),
      many: () => turn(SIDES.many, turnMs),
      constant: () => turn(SIDES.constant, turnMs),
    },
    rounds,
  )
  worker.end()
  const { one, many, constant } = turns
  return [
    figureOf(`${where}: calls per second`, one, constant, ({ callsPerSecond }) => callsPerSecond, thousands, {
      atLeast: 0.8,
    }),
    figureOf(`${where}: p99`, one, constant, ({ p99Ms }) => p99Ms, milliseconds, { atMost: 2 }),
    figureOf(
      `${where}: CPU of the service per call`,
      one,
      constant,
      ({ cpuSeconds }) => cpuSeconds,
      microseconds,
    ),
    figureOf(
      `${where}: decisions per second, ${MANY} in a call against one`,
      many,
      one,
      ({ decisionsPerSecond }) => decisionsPerSecond,
      thousands,
      { atLeast: 5 },
    ),
  ]
}

const thousands = (value: number) => `${(value / 1000).toFixed(1)}k`
const milliseconds = (value: number) => `${value.toFixed(1)} ms`
const microseconds = (value: number) => `${(value * 1e6).toFixed(1)} µs`

function figureOf(
  name: string,
  above: readonly Turn[],
  below: readonly Turn[],
  of: (turn: Turn) => number,
  spell: (value: number) => string,
  target?: Target,
): Figure {
  const [ours, theirs] = [above.map(of), below.map(of)]
  const spread = ratios(ours, theirs)
  const unit: Unit = 'x'
  return {
    name,
    value: median(spread),
    unit,
    ...(target && { target }),
    spread,
    note: `${spell(median(ours))} against ${spell(median(theirs))}`,
    raw: { ours, theirs },
  }
}
