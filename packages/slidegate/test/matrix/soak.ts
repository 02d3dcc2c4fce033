import { setTimeout as delay, setImmediate as nextTurn } from 'node:timers/promises'
import { Random } from '../simulation/random.ts'
import { ask } from '../support/ask.ts'
import { until } from '../support/until.ts'
import { CLIENTS, type Connected, connectorOf } from './clients.ts'
import { bytesInUse, Meter, percentile } from './meter.ts'
import { SoakCaller } from './soak-caller.ts'
import { clusterWorld, serverWorld, type World } from './soak-world.ts'
import { TIMEOUT_MS } from './subject.ts'

export interface SoakOptions {
  readonly seed: number
  readonly lastsMs: number
  /** Whether a Cluster is struck as well. */
  readonly withCluster: boolean
  /** From one look at everything to the next. */
  readonly checkedEveryMs: number
  /** Hears of all that happens. */
  log?(line: string): void
}

/** What was found at one look. */
interface Look {
  readonly bytes: number
  readonly timers: number
  readonly sockets: number
}

export interface SoakReport {
  readonly incidents: number
  readonly falls: number
  readonly looks: readonly Look[]
  readonly complaints: readonly string[]
}

/** How a look may differ from the first: clients make and lose connections all the time. */
const MORE_RESOURCES_MAX = 12
const GROWN_BYTES_MAX = 6_000_000
const BLOCKED_MAX_MS = 250

/** Strikes stores with faults at random for a while, and looks after what has to stay as it is. */
export async function soak(options: SoakOptions): Promise<SoakReport> {
  const random = new Random(options.seed)
  const worlds = [await serverWorld(), ...(options.withCluster ? [await clusterWorld()] : [])]
  const sides: Side[] = []
  try {
    for (const world of worlds) sides.push(await sideOf(world))
    return await strike(sides, random, options)
  } finally {
    for (const side of sides) await endOf(side)
    for (const world of worlds) await world.end()
  }
}

/** A world, and who lives in it. */
interface Side {
  readonly world: World
  readonly callers: readonly SoakCaller[]
  readonly connections: readonly Connected[]
}

/** Each with a client of another kind, those that notice dead connections. */
const INHABITANTS = [
  ['throw', 'ioredis-5-set'],
  ['deny', 'node-redis-6-set'],
  ['allow', 'own'],
  ['local', 'ioredis-5-set'],
] as const

async function sideOf(world: World): Promise<Side> {
  const connections: Connected[] = []
  const callers: SoakCaller[] = []
  for (const [policy, name] of INHABITANTS) {
    const client = CLIENTS.find((client) => client.name === name)!
    const connected = await connectorOf(client, world.on)!(world.target)
    connections.push(connected)
    callers.push(new SoakCaller(policy, connected.client))
  }
  return { world, callers, connections }
}

async function endOf({ callers, connections }: Side): Promise<void> {
  await Promise.all(callers.map((caller) => caller.stop()))
  for (const { end } of connections) await end()
}

async function strike(sides: readonly Side[], random: Random, options: SoakOptions): Promise<SoakReport> {
  const { lastsMs, checkedEveryMs, log = () => {} } = options
  const startMs = performance.now()
  const looks: Look[] = []
  const complaints: string[] = []
  const callers = sides.flatMap(({ callers }) => callers)
  let incidents = 0
  let lookAtMs = startMs
  let meter = new Meter()
  while (performance.now() < startMs + lastsMs) {
    await delay(random.between(200, 1200))
    const name = await happen(random.pick(sides), random)
    incidents++
    log(`${((performance.now() - startMs) / 1000).toFixed(1)} s: ${name}`)
    if (performance.now() < lookAtMs) continue
    lookAtMs = performance.now() + checkedEveryMs
    meter.stop()
    complaints.push(
      ...(await complaintsAfter(sides, meter)).map((complaint) => `after ${name}: ${complaint}`),
    )
    const look = lookAround()
    log(`${look.bytes} bytes, ${look.timers} timers, ${look.sockets} sockets; ${complaints.join('; ')}`)
    looks.push(look)
    await nextTurn()
    meter = new Meter()
  }
  meter.stop()
  complaints.push(...(await complaintsAfter(sides, meter)))
  looks.push(lookAround())
  complaints.push(...growthOf(looks))
  return { incidents, falls: callers.reduce((sum, { falls }) => sum + falls, 0), looks, complaints }
}

async function happen({ world, callers }: Side, random: Random): Promise<string> {
  const { name, keepsData, longestMs = 1500, inject, heal } = await world.incident(random)
  const fromMs = Date.now()
  await inject()
  await delay(random.between(50, longestMs))
  await heal()
  // By whole milliseconds, which a server's clock shows.
  if (!keepsData) for (const { calls } of callers) calls.lost(fromMs, Date.now() + 1)
  return name
}

/** When all is well again. */
async function complaintsAfter(sides: readonly Side[], meter: Meter): Promise<string[]> {
  const callers = sides.flatMap(({ callers }) => callers)
  await until('all stores answer', async () => {
    const areAnswered = await Promise.all(callers.map((caller) => caller.isAnswered()))
    return areAnswered.every(Boolean) && callers.every(({ isDown }) => !isDown)
  })
  const p99MaxMs = TIMEOUT_MS + 100 + percentile(meter.lateMs, 99)
  const complaints = callers.flatMap((caller) => caller.complaints(p99MaxMs))
  if (meter.blockedMs > BLOCKED_MAX_MS)
    complaints.push(`the event loop was blocked for ${meter.blockedMs} ms`)
  for (const { world } of sides) complaints.push(...(await eternalKeysOf(world)))
  return complaints
}

const COUNT_ETERNAL = `
  local count = 0
  for _, key in ipairs(redis.call('KEYS', 'slidegate:*')) do
    if redis.call('PTTL', key) == -1 then count = count + 1 end
  end
  return count`

async function eternalKeysOf(world: World): Promise<string[]> {
  const counts = await Promise.all((await world.ports()).map((port) => ask(port, 'EVAL', COUNT_ETERNAL, 0)))
  return counts.filter((count) => count !== 0).map((count) => `${count} keys have no TTL`)
}

function lookAround(): Look {
  const resources = process.getActiveResourcesInfo()
  const countOf = (name: string) => resources.filter((resource) => resource === name).length
  return { bytes: bytesInUse(), timers: countOf('Timeout'), sockets: countOf('TCPSocketWrap') }
}

/** From the first looks, after which all is warm, to the last. */
function growthOf(looks: readonly Look[]): string[] {
  const first = looks.slice(1, Math.max(2, Math.ceil(looks.length / 4)))
  const last = looks.slice(-Math.max(1, Math.floor(looks.length / 4)))
  const grown = (value: (look: Look) => number) =>
    Math.min(...last.map(value)) - Math.max(...first.map(value))
  const complaints: string[] = []
  const bytes = grown((look) => look.bytes)
  if (bytes > GROWN_BYTES_MAX) complaints.push(`memory has grown by ${bytes} bytes`)
  for (const name of ['timers', 'sockets'] as const) {
    const more = grown((look) => look[name])
    if (more > MORE_RESOURCES_MAX) complaints.push(`there are ${more} more ${name}`)
  }
  return complaints
}
