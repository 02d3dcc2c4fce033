import assert from 'node:assert/strict'
import type { Framework } from '../http/apps.ts'
import { type Generator, type Server, startGenerator, startServer, type Turn } from '../http/servers.ts'
import { interleave, median, ratios } from '../measure.ts'
import { withRedis } from '../redis/with-redis.ts'
import type { BarPlot } from '../report/plot.ts'
import type { Effort, Figure, Measured, Scenario, Target } from '../scenario.ts'

/** A limit that is never reached: all requests are admitted. */
const POLICY = { limit: 100_000, windowMs: 60_000 }

/** The number of users. No user is hot, and most requests come from a known user. */
const USERS = 1000

const CONNECTIONS = 64

/** The length of the warm-up in turns. It compiles the code. */
const WARM_UP_TURNS = 3

interface Comparison {
  readonly framework: Framework
  readonly title: string
  readonly limiters: readonly Limiter[]
}

interface Limiter {
  readonly name: string
  readonly inMemory?: { readonly target?: Target }
  readonly onRedis?: { readonly target?: Target }
  /** Measured only at full effort. */
  readonly isMinor?: boolean
}

const BOTH = { inMemory: {}, onRedis: {} }

const COMPARISONS: readonly Comparison[] = [
  {
    framework: 'express',
    title: 'Express',
    limiters: [
      {
        name: 'slidegate',
        inMemory: { target: { atLeast: 0.95 } },
        onRedis: { target: { atLeast: 0.88 } },
      },
      { name: 'express-rate-limit', ...BOTH },
      { name: 'rate-limiter-flexible', ...BOTH, isMinor: true },
    ],
  },
  {
    framework: 'fastify',
    title: 'Fastify',
    limiters: [
      {
        name: 'slidegate',
        inMemory: { target: { atLeast: 0.9 } },
        onRedis: { target: { atLeast: 0.75 } },
      },
      { name: '@fastify/rate-limit', ...BOTH },
    ],
  },
  {
    framework: 'nest',
    title: 'Nest',
    limiters: [{ name: '@nestjs/throttler', inMemory: {}, isMinor: true }],
  },
  { framework: 'hono', title: 'Hono', limiters: [{ name: 'hono-rate-limiter', ...BOTH, isMinor: true }] },
]

interface Limited {
  readonly limiter: string
  readonly where: 'memory' | 'Redis'
  readonly target?: Target
}

export const http: Scenario = {
  name: 'http',
  title: `Requests per second of an app with a limiter, compared with the same app without one, with ${CONNECTIONS} connections and ${USERS} users`,
  async run(effort): Promise<Measured> {
    const figures: Figure[] = []
    const plots: BarPlot[] = []
    const generator = startGenerator()
    for (const comparison of COMPARISONS) {
      const limited = limitedOf(comparison, effort)
      if (limited.length === 0) continue
      const measured = await compare(generator, comparison, limited, effort)
      figures.push(...measured)
      plots.push(plotOf(comparison, limited, measured))
    }
    generator.end()
    return { figures, plots }
  },
}

function limitedOf({ limiters }: Comparison, { mode }: Effort): Limited[] {
  return limiters
    .filter(({ isMinor }) => mode === 'full' || isMinor !== true)
    .flatMap(({ name, inMemory, onRedis }) => [
      ...(inMemory === undefined ? [] : [{ limiter: name, where: 'memory' as const, ...inMemory }]),
      ...(onRedis === undefined ? [] : [{ limiter: name, where: 'Redis' as const, ...onRedis }]),
    ])
}

async function compare(
  generator: Generator,
  { framework, title }: Comparison,
  limited: readonly Limited[],
  { turnMs, rounds }: Effort,
): Promise<Figure[]> {
  return await withRedis(async (redis) => {
    const start = (limiter: string, redisPort?: number) =>
      startServer(generator, { framework, limiter, policy: POLICY, redisPort })
    const servers: Record<string, Server> = { bare: await start('bare') }
    for (const { limiter, where } of limited) {
      servers[nameOf(limiter, where)] = await start(
        limiter,
        where === 'Redis' ? redis.options.port : undefined,
      )
    }
    for (const server of Object.values(servers)) await turn(server, WARM_UP_TURNS * turnMs)
    const turns = await interleave(
      Object.fromEntries(Object.entries(servers).map(([name, server]) => [name, () => turn(server, turnMs)])),
      rounds,
    )
    for (const server of Object.values(servers)) server.end()
    return limited.flatMap(({ limiter, where, target }) =>
      figuresOf(`${title}, ${nameOf(limiter, where)}`, turns[nameOf(limiter, where)]!, turns.bare!, target),
    )
  })
}

function nameOf(limiter: string, where: Limited['where']): string {
  return `${limiter} (${where})`
}

async function turn(server: Server, ms: number): Promise<Turn> {
  const result = await server.load({ connections: CONNECTIONS, users: USERS, ms })
  assert.deepEqual(Object.keys(result.statuses), ['200'], 'all requests are admitted')
  return result
}

function figuresOf(name: string, turns: readonly Turn[], bare: readonly Turn[], target?: Target): Figure[] {
  const figure = (what: string, of: (turn: Turn) => number, note: (values: readonly number[]) => string) => {
    const [withLimiter, without] = [turns.map(of), bare.map(of)]
    const spread = ratios(withLimiter, without)
    return {
      name: `${name}: ${what}`,
      value: median(spread),
      unit: 'x' as const,
      spread,
      note: `${note(withLimiter)} vs. ${note(without)}`,
      raw: { withLimiter, without },
    }
  }
  return [
    {
      ...figure(
        'requests per second',
        ({ perSecond }) => perSecond,
        (values) => `${(median(values) / 1000).toFixed(1)}k`,
      ),
      target,
    },
    figure(
      'server CPU per request',
      ({ cpuSeconds }) => cpuSeconds,
      (values) => `${(median(values) * 1e6).toFixed(1)} µs`,
    ),
    figure(
      'p99',
      ({ p99Ms }) => p99Ms,
      (values) => `${median(values).toFixed(1)} ms`,
    ),
  ]
}

function plotOf(
  { framework, title }: Comparison,
  limited: readonly Limited[],
  figures: readonly Figure[],
): BarPlot {
  const ratioOf = (limiter: string, where: Limited['where']) =>
    figures.find(({ name }) => name === `${title}, ${nameOf(limiter, where)}: requests per second`)?.value ??
    null
  return {
    kind: 'bars',
    name: `http-${framework}`,
    title: `${title}: requests per second with a limiter, compared with none`,
    axis: { label: 'ratio to no limiter' },
    series: ['in memory', 'on Redis'],
    bars: [...new Set(limited.map(({ limiter }) => limiter))].map((limiter) => ({
      label: limiter,
      role: limiter === 'slidegate' ? 'ours' : 'peer',
      values: [ratioOf(limiter, 'memory'), ratioOf(limiter, 'Redis')],
    })),
    mark: { label: 'no limiter', value: 1 },
  }
}
