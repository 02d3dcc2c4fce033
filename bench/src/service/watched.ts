import assert from 'node:assert/strict'
import type { StoreConfig } from '../../../packages/server/src/config/schema.ts'
import type { Posts } from '../http/generator.ts'
import { startGenerator } from '../http/servers.ts'
import { interleave, median, ratios } from '../measure.ts'
import { withRedis } from '../redis/with-redis.ts'
import type { Effort, Figure } from '../scenario.ts'
import { startWorkers } from '../workers.ts'
import type { ToWatched, WatchedPorts } from './messages.ts'

/** Many keys, so that most have no counter in the sketches. */
const KEYS = 100_000
const IN_FLIGHT = 64
const MANY = 64
const WARM_UP_TURNS = 3

const CALLS: Readonly<Record<string, Posts>> = {
  'one decision per call': { path: '/v1/consume', limiter: 'api' },
  [`${MANY} per call`]: { path: '/v1/consume', limiter: 'api', perCall: MANY },
}

interface Turn {
  readonly perSecond: number
  /** CPU time of the service per decision. */
  readonly cpuSeconds: number
}

/** Measures the cost of the service's metrics and sketches. */
export async function watchedService(effort: Effort): Promise<Figure[]> {
  return withRedis(async (redis) => [
    ...(await onStore('on Redis', { redis: { url: `redis://127.0.0.1:${redis.options.port}` } }, effort)),
    ...(await onStore('in memory', { memory: {} }, effort)),
  ])
}

async function onStore(where: string, store: StoreConfig, { turnMs, rounds }: Effort): Promise<Figure[]> {
  const generator = startGenerator()
  const worker = startWorkers<ToWatched, WatchedPorts | number>(
    new URL('watched-server.ts', import.meta.url),
    1,
  )[0]!
  const ports = (await worker.ask({ store })) as WatchedPorts
  const turn = async (port: number, posts: Posts, ms: number): Promise<Turn> => {
    const before = (await worker.ask('cpu seconds')) as number
    const { requests, seconds, statuses } = await generator.ask({
      ...{ port, connections: IN_FLIGHT, users: KEYS, ms },
      posts,
    })
    const after = (await worker.ask('cpu seconds')) as number
    assert.deepEqual(Object.keys(statuses), ['200'], 'all requests are admitted')
    const decisions = requests * (posts.perCall ?? 1)
    return { perSecond: decisions / seconds, cpuSeconds: (after - before) / decisions }
  }
  const figures: Figure[] = []
  for (const [name, posts] of Object.entries(CALLS)) {
    for (const port of [ports.watched, ports.unwatched]) await turn(port, posts, WARM_UP_TURNS * turnMs)
    const { on, off, again } = await interleave(
      {
        on: () => turn(ports.watched, posts, turnMs),
        off: () => turn(ports.unwatched, posts, turnMs),
        // Shows the noise between two equal sides.
        again: () => turn(ports.unwatched, posts, turnMs),
      },
      rounds,
    )
    figures.push(
      ...against(`service, ${where}, ${name}, metrics and sketches on`, on!, off!, { atLeast: 0.97 }),
      ...against(`service, ${where}, ${name}, off, repeated`, again!, off!),
    )
  }
  worker.end()
  generator.end()
  return figures
}

function against(
  name: string,
  ours: readonly Turn[],
  theirs: readonly Turn[],
  target?: { readonly atLeast: number },
): Figure[] {
  const figure = (what: string, of: (turn: Turn) => number, format: (value: number) => string): Figure => {
    const [mine, others] = [ours.map(of), theirs.map(of)]
    const spread = ratios(mine, others)
    const note = `${format(median(mine))} vs. ${format(median(others))}`
    return { name: `${name}: ${what}`, value: median(spread), unit: 'x', spread, note, raw: { mine, others } }
  }
  return [
    {
      ...figure(
        'decisions per second',
        ({ perSecond }) => perSecond,
        (value) => `${(value / 1000).toFixed(1)}k`,
      ),
      ...(target && { target }),
    },
    figure(
      'CPU per decision',
      ({ cpuSeconds }) => cpuSeconds,
      (value) => `${(value * 1e6).toFixed(2)} µs`,
    ),
  ]
}
