import { audit } from './audit.ts'
import { startCallers, startWeather } from './callers.ts'
import { Process } from './process.ts'
import { definitionOf, policyOf, processOptionsOf, trafficOf } from './scenario.ts'
import { climateOf } from './weather.ts'
import { World } from './world.ts'

/** By then, all calls have arrived or are lost, and outages have been logged. */
const QUIET_MS = 11_000

/** The time limit for recovery after the servers are back. */
const BACK_WITHIN_MS = 1000

/** Simulates one run. The seed determines everything that callers and servers do. */
export async function simulate(seed: number, isTraced = false): Promise<World> {
  const world = new World(seed, isTraced)
  const { random, loop } = world
  const uninstall = loop.install()
  try {
    const definitions = ['one', 'two', 'three']
      .slice(0, random.int(1, 3))
      .map((name) => definitionOf(random, name))
    const processes = Array.from(
      { length: random.int(1, 3) },
      (_, i) => new Process(world, i, processOptionsOf(random)),
    )
    for (const process of processes) {
      for (const definition of definitions) process.addLimiter(definition, policyOf(random))
      world.trace(() => `p${process.number}: ${JSON.stringify(process.options)}`)
      for (const { name, policy } of process.limiters) world.trace(() => `${name}: ${JSON.stringify(policy)}`)
    }
    const traffic = trafficOf(random)
    world.trace(() => JSON.stringify({ definitions, traffic }))
    startWeather(world, processes, climateOf(random), traffic.lastsMs)
    startCallers(world, processes, traffic)
    const isViolated = () => world.violations.length > 0
    // Bad weather can last longer than the traffic.
    while (!isViolated() && !isFine(world, processes, traffic.lastsMs)) await loop.run(100, isViolated)
    if (!isViolated()) await expectBack(world, processes, traffic.keys)
    if (!isViolated()) await expectQuiet(world, processes)
    if (!isViolated()) audit(world, processes)
  } finally {
    uninstall()
  }
  return world
}

function isFine(world: World, processes: readonly Process[], lastsMs: number): boolean {
  const isClear = processes.every(({ links }) => links.every(({ weather }) => weather.name === 'fine'))
  return world.atMs > lastsMs && isClear
}

/** Checks that requests reach the store again soon. */
async function expectBack(
  world: World,
  processes: readonly Process[],
  keys: readonly string[],
): Promise<void> {
  const { loop } = world
  const backAtMs = loop.nowMs
  world.trace(() => 'all servers are back')
  while (loop.nowMs < backAtMs + BACK_WITHIN_MS + 100 && world.violations.length === 0) {
    const mustBeExact = loop.nowMs > backAtMs + BACK_WITHIN_MS
    for (const { limiters } of processes)
      for (const limiter of limiters) for (const key of keys) limiter.ask('consume', key, 1, { mustBeExact })
    await loop.run(40)
  }
}

/** Checks that everything is answered, returned and idle after the last request. */
async function expectQuiet(world: World, processes: readonly Process[]): Promise<void> {
  const { loop } = world
  let open = processes.length
  const close = async (process: Process) => {
    await process.close()
    open--
  }
  // Some processes close with leases and calls in flight.
  const early = new Set(processes.filter(() => world.random.chance(0.5)))
  for (const process of early) void close(process)
  await loop.run(QUIET_MS)
  world.expect(loop.timers === 0, () => `${loop.timers} timers are still set`)
  for (const { allLimiters } of processes) for (const limiter of allLimiters) limiter.expectQuiet()
  for (const process of processes) if (!early.has(process)) void close(process)
  await loop.run(QUIET_MS)
  world.expect(open === 0, () => `${open} processes haven't returned their leases`)
  world.expect(loop.timers === 0, () => `${loop.timers} timers are still set after everything is closed`)
  world.expect(loop.referenced === 0, () => `${loop.referenced} timers keep the process alive`)
}
