import assert from 'node:assert/strict'
import type { Redis } from 'ioredis'
import { type Server, startGenerator, startServer, type Turn } from '../http/servers.ts'
import { interleave, median, ratios } from '../measure.ts'
import type { Policy } from '../peers/peer.ts'
import { mainThreadSeconds } from '../redis/info.ts'
import { withRedis } from '../redis/with-redis.ts'
import type { BarPlot } from '../report/plot.ts'
import type { Effort, Figure, Scenario, Target } from '../scenario.ts'

const USERS = 3000

/** 100 per minute. The short form has the same rate in a shorter window. */
const POLICIES: Readonly<Record<Effort['mode'], Policy>> = {
  short: { limit: 2, windowMs: 1200 },
  full: { limit: 100, windowMs: 60_000 },
}

/** Requests sent by each user, as a multiple of the limit. */
const DEMAND = 1.5

/**
 * The length of the load, in windows.
 *
 * It starts in the middle of a window, so it crosses two boundaries and covers a whole window between them.
 */
const WINDOWS = 2

const ROUNDS: Readonly<Record<Effort['mode'], number>> = { short: 3, full: 15 }

const SIDES = ['fixed window', 'ZSET log', 'slidegate'] as const
type SideName = (typeof SIDES)[number]

/** The result of a turn at a fixed rate, with the share of correct decisions. */
interface Paced extends Turn {
  readonly rightPercent: number
  readonly redisPercent: number
}

export const field: Scenario = {
  name: 'field',
  title: `${USERS} users of a node:http server, each with a connection and a limit of 100 per minute in Redis`,
  run: ({ mode, turnMs }) =>
    withRedis(async (redis) => {
      const policy = POLICIES[mode]
      const generator = startGenerator()
      const start = (limiter: SideName) =>
        startServer(generator, { framework: 'node', limiter, policy, redisPort: redis.options.port })
      const servers = Object.fromEntries(
        await Promise.all(SIDES.map(async (name) => [name, await start(name)] as const)),
      ) as Record<SideName, Server>
      let turns = 0
      const atFullSpeed = async (server: Server) =>
        checked(await server.load({ connections: USERS, users: `fast:${++turns}`, ms: 3 * turnMs }))
      const rounds = { warmUps: 1, rounds: ROUNDS[mode] }
      const fast = await interleave(sidesOf(servers, atFullSpeed), rounds)
      const atFixedRate = (server: Server) => paced(redis, server, `paced:${++turns}`, policy)
      const slow = await interleave(sidesOf(servers, atFixedRate), { warmUps: 0, rounds: 1 })
      for (const { end } of [...Object.values(servers), generator]) end()
      const figures = SIDES.flatMap((name) => figuresOf(name, slow, fast))
      return { figures, plots: [plotOf(figures, policy)] }
    }),
}

function sidesOf<Result>(
  servers: Readonly<Record<SideName, Server>>,
  turn: (server: Server) => Promise<Result>,
): Record<SideName, () => Promise<Result>> {
  return {
    'fixed window': () => turn(servers['fixed window']),
    'ZSET log': () => turn(servers['ZSET log']),
    slidegate: () => turn(servers.slidegate),
  }
}

async function paced(
  redis: Redis,
  server: Server,
  users: string,
  { limit, windowMs }: Policy,
): Promise<Paced> {
  // Discards earlier decisions.
  await server.judgement()
  const load = {
    connections: USERS,
    users,
    ms: WINDOWS * windowMs,
    perSecond: (DEMAND * USERS * limit * 1000) / windowMs,
    beginsAtMs: nextMiddleOfWindow(windowMs),
  }
  const before = await mainThreadSeconds(redis)
  const turn = checked(await server.load(load))
  const redisSeconds = (await mainThreadSeconds(redis)) - before
  const { decisions, right } = await server.judgement()
  assert.equal(decisions, turn.requests)
  return {
    ...turn,
    rightPercent: (100 * right) / decisions,
    redisPercent: (100 * redisSeconds) / turn.seconds,
  }
}

/** Returns the middle of a window aligned to the epoch, at least 300 ms ahead. */
function nextMiddleOfWindow(windowMs: number): number {
  return (Math.ceil((Date.now() + 300) / windowMs - 0.5) + 0.5) * windowMs
}

function checked(turn: Turn): Turn {
  const { 200: admitted = 0, 429: denied = 0 } = turn.statuses
  assert.equal(admitted + denied, turn.requests, 'all requests are decided')
  return turn
}

function figuresOf(
  name: SideName,
  slow: Readonly<Record<SideName, readonly Paced[]>>,
  fast: Readonly<Record<SideName, readonly Turn[]>>,
): Figure[] {
  const isOurs = name === 'slidegate'
  const target = (target: Target) => (isOurs ? target : undefined)
  const pacedFigure = (what: string, unit: 'ms' | '%', of: (turn: Paced) => number): Figure => {
    const values = slow[name].map(of)
    return { name: `${name}: ${what}`, value: median(values), unit, raw: { values } }
  }
  const rates = fast[name].map(({ perSecond }) => perSecond)
  const spread = ratios(
    rates,
    fast['fixed window'].map(({ perSecond }) => perSecond),
  )
  return [
    {
      ...pacedFigure('correct decisions', '%', ({ rightPercent }) => rightPercent),
      target: target({ atLeast: 100 }),
      note: `${slow[name][0]!.requests} requests in ${WINDOWS} windows, ${DEMAND} x the limit`,
    },
    pacedFigure(`mean response time at ${DEMAND} x the limit`, 'ms', ({ meanMs }) => meanMs),
    pacedFigure(`Redis CPU at ${DEMAND} x the limit`, '%', ({ redisPercent }) => redisPercent),
    {
      name: `${name}: requests per second at full speed, vs. the fixed window`,
      value: median(spread),
      unit: 'x',
      target: target({ atLeast: 1 }),
      spread,
      note: `${(median(rates) / 1000).toFixed(1)}k, mean ${median(fast[name].map(({ meanMs }) => meanMs)).toFixed(0)} ms`,
      raw: { perSecond: rates },
    },
  ]
}

/** The share of correct decisions, and the cost: Redis CPU and response time. */
export function plotOf(figures: readonly Figure[], { limit, windowMs }: Policy): BarPlot {
  const figureOf = (name: SideName, what: string) =>
    figures.find((figure) => figure.name.startsWith(`${name}: ${what}`))!.value
  return {
    kind: 'bars',
    name: 'field',
    title: `${USERS} users, each with ${limit} requests per ${windowMs / 1000} s`,
    note: `Each user sends ${DEMAND} times its limit. A fixed window allows up to twice the limit across its boundary.`,
    axis: { label: 'percent, or milliseconds' },
    series: ['correct decisions, %', 'Redis CPU, %', 'mean response time, ms'],
    bars: SIDES.map((name) => ({
      label: name,
      role: name === 'slidegate' ? 'ours' : 'peer',
      values: ['correct decisions', 'Redis CPU', 'mean response time'].map((what) => figureOf(name, what)),
    })),
  }
}
