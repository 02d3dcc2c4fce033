import assert from 'node:assert/strict'
import type { Redis } from 'ioredis'
import { type Server, startGenerator, startServer, type Turn } from '../http/servers.ts'
import { interleave, median, ratios } from '../measure.ts'
import type { Policy } from '../peers/peer.ts'
import { mainThreadSeconds } from '../redis/info.ts'
import { withRedis } from '../redis/with-redis.ts'
import type { Effort, Figure, Scenario, Target } from '../scenario.ts'

const USERS = 3000

/** 100 a minute; for a short look as many per second in a shorter window. */
const POLICIES: Readonly<Record<Effort['mode'], Policy>> = {
  short: { limit: 2, windowMs: 1200 },
  full: { limit: 100, windowMs: 60_000 },
}

/** What users ask for at their pace, of what they may have. */
const DEMAND = 1.5

/**
 * Two windows long, and begun in the middle of one, so that whole windows are seen from edge to edge, two edges are
 * crossed, and as much is asked for before the first as a limiter can forget there.
 */
const WINDOWS = 2

const ROUNDS: Readonly<Record<Effort['mode'], number>> = { short: 3, full: 15 }

const SIDES = ['fixed window', 'ZSET log', 'slidegate'] as const
type SideName = (typeof SIDES)[number]

/** Users at their pace: an answer is worth something when it is right, and soon. */
interface Paced extends Turn {
  readonly rightPercent: number
  readonly redisPercent: number
}

export const field: Scenario = {
  name: 'field',
  title: `${USERS} users at once on a server of node:http, each with a connection and a limit of 100 a minute in Redis`,
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
      const asFastAsAnswered = async (server: Server) =>
        checked(await server.load({ connections: USERS, users: `fast:${++turns}`, ms: 3 * turnMs }))
      const rounds = { warmUps: 1, rounds: ROUNDS[mode] }
      const fast = await interleave(sidesOf(servers, asFastAsAnswered), rounds)
      const atTheirPace = (server: Server) => paced(redis, server, `paced:${++turns}`, policy)
      const slow = await interleave(sidesOf(servers, atTheirPace), { warmUps: 0, rounds: 1 })
      for (const { end } of [...Object.values(servers), generator]) end()
      return SIDES.flatMap((name) => figuresOf(name, slow, fast))
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
  // Forgets what came before.
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

/** Of those that are aligned to the epoch, with time to get ready. */
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
      ...pacedFigure('right decisions', '%', ({ rightPercent }) => rightPercent),
      target: target({ atLeast: 100 }),
      note: `${slow[name][0]!.requests} in ${WINDOWS} windows, ${DEMAND} x the limit asked for`,
    },
    pacedFigure('mean response time at that pace', 'ms', ({ meanMs }) => meanMs),
    pacedFigure('CPU of Redis at that pace', '%', ({ redisPercent }) => redisPercent),
    {
      name: `${name}: requests per second as fast as answered, against the fixed window`,
      value: median(spread),
      unit: 'x',
      target: target({ atLeast: 1 }),
      spread,
      note: `${(median(rates) / 1000).toFixed(1)}k, mean ${median(fast[name].map(({ meanMs }) => meanMs)).toFixed(0)} ms`,
      raw: { perSecond: rates },
    },
  ]
}
