import type { CallerRequest } from './caller-request.ts'
import type { Process } from './process.ts'
import type { Traffic } from './scenario.ts'
import type { WatchedLimiter } from './watched-limiter.ts'
import { type Climate, FINE, type Weather } from './weather.ts'
import type { World } from './world.ts'

/** Clock steps of a server: within the tolerance, beyond it, and far beyond. */
const STEPS_MS: readonly number[] = [-3_600_000, -60_000, -5000, -900, 900, 5000, 60_000, 3_600_000]

/** Starts random actions on limiters, one after another, until the traffic is over. */
export function startCallers(world: World, processes: readonly Process[], traffic: Traffic): void {
  const { random, loop } = world
  const next = () => {
    if (world.atMs >= traffic.lastsMs) return
    act(world, processes, traffic)
    loop.after(random.exponential(traffic.meanGapMs), next)
  }
  loop.after(1, next)
}

function act(world: World, processes: readonly Process[], traffic: Traffic): void {
  const { random } = world
  const process = random.pick(processes)
  const others = random.pick(processes).limiters
  const limiter = random.pick(process.limiters)
  const key = random.chance(traffic.hot) ? traffic.keys[0]! : random.pick(traffic.keys)
  const cost = random.pick(traffic.costs)
  const happens = (share: number) => share > 0 && random.chance(share)
  if (happens(traffic.stalls)) stall(world, limiter, key, cost)
  else if (happens(traffic.trials)) tryPromise(world, limiter, key, others)
  else if (happens(traffic.floods)) flood(world, limiter, key, traffic)
  else if (happens(traffic.flushes)) flush(world)
  else if (happens(traffic.steps)) step(world)
  else if (happens(traffic.closings)) process.closeLimiter(limiter)
  else if (happens(traffic.resets)) limiter.ask('reset', key, 0)
  else if (happens(traffic.charges)) limiter.ask('charge', key, cost)
  else if (happens(traffic.peeks)) limiter.ask('peek', key, cost)
  else if (happens(traffic.refunds)) refund(world, limiter)
  else for (let left = random.pick(traffic.bursts); left > 0; left--) limiter.ask('consume', key, cost)
  if (traffic.closings > 0 && random.chance(0.05)) random.pick(process.allLimiters).ask('consume', key, cost)
}

/** Blocks the loop between two requests of one tick. */
function stall(world: World, limiter: WatchedLimiter, key: string, cost: number): void {
  const ms = world.random.pick([5, 60, 300])
  limiter.ask('consume', key, cost)
  world.trace(() => `blocking the loop for ${ms} ms`)
  world.count('stalls')
  world.loop.stall(ms)
  limiter.ask('consume', key, cost)
}

/**
 * When a lease is spent, and when others take all free units.
 * Both times are fractions of the lease. The second counts from the end of the window that starts with the lease.
 */
const TRIALS: readonly (readonly [number, number])[] = [
  [0.5, 0],
  [0.9, 0],
  [0.9, 0.5],
  [1, 1],
  [1.1, 1],
  [1.5, 1],
]

function tryPromise(
  world: World,
  limiter: WatchedLimiter,
  key: string,
  others: readonly WatchedLimiter[],
): void {
  if (world.random.chance(0.5)) tryLease(world, limiter, key, others)
  else tryDenial(world, limiter, key)
}

/** Tests the edges of a lease. It is spent as late as possible, then others take all free units as soon as possible. */
function tryLease(
  world: World,
  limiter: WatchedLimiter,
  key: string,
  others: readonly WatchedLimiter[],
): void {
  const { random, loop } = world
  const { definition, process } = limiter
  const other = others.find((candidate) => candidate.definition === definition) ?? limiter
  const leaseMs = Math.min(process.options.leaseMs, ...definition.limits.map(({ windowMs }) => windowMs / 10))
  const { windowMs, kind } = random.pick(definition.limits)
  const [spentAfter, takenAfter] = random.pick(TRIALS)
  const spentMs = leaseMs * spentAfter
  world.count('lease trials')
  const consume = (by: WatchedLimiter, cost: number, times: number) => {
    for (let left = times; left > 0; left--) by.ask('consume', key, cost)
  }
  const takeAll = () => {
    const least = Math.min(...definition.limits.map(({ limit }) => limit))
    for (let cost = least; cost >= 1; cost = Math.floor(cost / 2)) consume(other, cost, 2)
  }
  // For a fixed window, starts so that the window ends during the lease. For a sliding window, others take
  // all units when it has just dropped the lease.
  const isFixed = kind.tag === 'f'
  const startMs = isFixed ? Math.max(1, windowMs - (Math.floor(loop.wallMs) % windowMs) - leaseMs / 2) : 1
  const endMs = isFixed ? spentMs + 1 : windowMs + leaseMs * takenAfter + random.int(0, 2)
  loop.after(startMs, () => {
    consume(limiter, 1, 7)
    loop.after(2.5, () => consume(limiter, 1, 1))
    loop.after(2.5 + spentMs, () => consume(limiter, 1, random.pick([1, 5, 10])))
    loop.after(2.5 + endMs, takeAll)
  })
}

/** Tests the deny cache at its edges. A full key gets room while it is requested repeatedly. */
function tryDenial(world: World, limiter: WatchedLimiter, key: string): void {
  const { random, loop } = world
  const of = limiter.requests.findLast((request) => request.key === key && isReturnable(request))
  if (of === undefined) return
  const { cost } = of
  world.count('denial trials')
  const consume = () => limiter.ask('consume', key, cost)
  const things = [consume, consume, () => limiter.ask('refund', key, cost, { of })]
  if (random.chance(0.5)) things.reverse()
  for (const thing of things) thing()
  for (const ms of [0.5, 1, 2, 4, 8]) loop.after(ms, consume)
}

/** Floods the queue. Requests of one cost are joined into one op; those of several costs aren't. */
function flood(world: World, limiter: WatchedLimiter, key: string, { costs, keys }: Traffic): void {
  const { random } = world
  const isVaried = random.chance(0.5)
  world.count('floods')
  for (let left = 600; left > 0; left--) {
    if (isVaried) limiter.ask('consume', keys[left % keys.length]!, costs[left % costs.length]!)
    else limiter.ask('consume', key, costs[0]!)
  }
}

function flush(world: World): void {
  world.trace(() => 'a server lost its data')
  world.count('flushes')
  world.random.pick(world.servers).flush()
}

function step(world: World): void {
  const ms = world.random.pick(STEPS_MS)
  world.trace(() => `a server's clock is set by ${ms} ms`)
  world.count('steps')
  world.random.pick(world.servers).step(ms)
}

/** Refunds one of the last decisions, which may have been refunded already. */
function refund(world: World, limiter: WatchedLimiter): void {
  const { requests } = limiter
  const of = requests[requests.length - 1 - world.random.int(0, Math.min(requests.length, 30))]
  if (of === undefined || !isReturnable(of)) return
  limiter.ask('refund', of.key, world.random.int(1, of.cost), { of })
}

function isReturnable({ question, decision }: CallerRequest): boolean {
  return question === 'consume' && decision?.allowed === true
}

/** Alternates between good and bad weather for each server. */
export function startWeather(
  world: World,
  processes: readonly Process[],
  climate: Climate,
  lastsMs: number,
): void {
  const { random, loop } = world
  world.servers.forEach((server, i) => {
    const set = (weather: Weather, isLocal: boolean) => {
      const affected = isLocal ? [random.pick(processes)] : processes
      for (const process of affected) process.links[i]!.weather = weather
      world.trace(() => `server ${i}: ${weather.name}${isLocal ? ` for p${affected[0]!.number}` : ''}`)
      if (weather.isFrozen) server.isFrozen = true
    }
    const clear = () => {
      for (const process of processes) process.links[i]!.weather = FINE
      if (server.isFrozen) server.thaw()
      world.trace(() => `server ${i}: fine`)
    }
    const turnBad = () => {
      if (world.atMs >= lastsMs) return
      const weather = random.pick(climate.kinds)
      world.count(`weather ${weather.name}`)
      set(weather, random.chance(climate.local))
      loop.after(random.exponential(climate.badMs), turnFine)
    }
    const turnFine = () => {
      clear()
      if (world.atMs < lastsMs) loop.after(random.exponential(climate.fineMs), turnBad)
    }
    loop.after(random.exponential(climate.fineMs), turnBad)
  })
}
