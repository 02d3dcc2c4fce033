import { audit } from './audit.ts'
import { startCallers, startWeather } from './callers.ts'
import { Process } from './process.ts'
import { definitionOf, policyOf, processOptionsOf, trafficOf } from './scenario.ts'
import { climateOf } from './weather.ts'
import { World } from './world.ts'

/** By then all calls have arrived, or never will. Outages are logged by then, too. */
const QUIET_MS = 11_000

/** After the servers have come back. */
const BACK_WITHIN_MS = 1000

/** Plays one run: what callers do and what befalls servers follows from the seed, and so does all else. */
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
    // A spell of bad weather ends in its own time.
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

/** Whoever keeps asking hears the store itself again, soon. */
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

/** When nobody asks anything any more, all is answered, returned, and at rest. */
async function expectQuiet(world: World, processes: readonly Process[]): Promise<void> {
  const { loop } = world
  let open = processes.length
  const close = async (process: Process) => {
    await process.close()
    open--
  }
  // Some with all that they hold, and what is on its way.
  const early = new Set(processes.filter(() => world.random.chance(0.5)))
  for (const process of early) void close(process)
  await loop.run(QUIET_MS)
  world.expect(loop.timers === 0, () => `${loop.timers} timers are still set`)
  for (const { allLimiters } of processes) for (const limiter of allLimiters) limiter.expectQuiet()
  for (const process of processes) if (!early.has(process)) void close(process)
  await loop.run(QUIET_MS)
  world.expect(open === 0, () => `${open} processes have not returned what they hold`)
  world.expect(loop.timers === 0, () => `${loop.timers} timers are still set after all is closed`)
  world.expect(loop.referenced === 0, () => `${loop.referenced} timers keep the process alive`)
}
