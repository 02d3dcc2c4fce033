import { interleave, median, ratios } from '../measure.ts'
import type { Filled, Filling } from '../memory/filling.ts'
import type { CpuSeconds, ToSide } from '../memory/side-process.ts'
import { MEMORY_SIDES, type MemorySide } from '../memory/sides.ts'
import type { Policy } from '../peers/peer.ts'
import type { Bar, Plot } from '../report/plot.ts'
import type { Effort, Figure, Measured, Scenario, Target } from '../scenario.ts'
import { startWorkers } from '../workers.ts'

interface Setting {
  readonly name: string
  readonly slug: string
  readonly keys: number
  readonly policy: Policy
  /** Name of the other side -> target. */
  readonly targets: Readonly<Record<string, Target>>
}

const OURS = 'slidegate'
const FLOOR = 'Map, clock, literal'
const PEER = 'rate-limiter-flexible'
const MILLION = 1_000_000

// The limits are never reached.
const SETTINGS: readonly Setting[] = [
  {
    name: 'one key',
    slug: 'one-key',
    keys: 1,
    policy: { limit: 100_000_000, windowMs: 1000 },
    targets: { [PEER]: { atLeast: 1.5 }, [FLOOR]: { atLeast: 0.7 } },
  },
  {
    name: '10,000 keys',
    slug: '10000-keys',
    keys: 10_000,
    policy: { limit: 2000, windowMs: 1000 },
    targets: { [PEER]: { atLeast: 2 }, [FLOOR]: { atLeast: 0.7 } },
  },
  {
    name: '1,000,000 keys',
    slug: '1000000-keys',
    keys: MILLION,
    policy: { limit: 2000, windowMs: 60_000 },
    targets: { [FLOOR]: { atLeast: 0.8 } },
  },
]

/** Processes per side. The speed of compiled code differs by a tenth between processes. */
const PROCESSES: Readonly<Record<Effort['mode'], number>> = { short: 1, full: 3 }

export const memory: Scenario = {
  name: 'memory',
  title: 'consumeSync in memory, compared with other packages and a bare Map',
  async run(effort): Promise<Measured> {
    const figures: Figure[] = []
    const plots: Plot[] = []
    for (const setting of SETTINGS) {
      const measured = await measureSpeed(setting, effort)
      figures.push(...measured.figures)
      plots.push(...measured.plots)
    }
    const filled = await measureFilling(effort)
    return { figures: [...figures, ...filled.figures], plots: [...plots, ...filled.plots] }
  },
}

/** Returns the sides to measure. In short mode, these are only sides with targets. */
function sidesOf({ mode }: Effort, keys: number): readonly MemorySide[] {
  if (mode === 'short') return MEMORY_SIDES.slice(0, keys === MILLION ? 2 : 3)
  return MEMORY_SIDES.filter(({ slowsDown }) => !slowsDown || keys > 1)
}

/** Measures each side in its own process. In a shared process, sides would evict each other's caches. */
async function measureSpeed(setting: Setting, effort: Effort): Promise<Measured> {
  const sides = sidesOf(effort, setting.keys)
  const cpu = new Map(sides.map(({ name }) => [name, [] as CpuSeconds[]]))
  for (let i = 0; i < PROCESSES[effort.mode]; i++) {
    const turns = await takeTurns(setting, sides, effort)
    for (const [name, all] of cpu) all.push(...turns[name]!)
  }
  const ours = cpu.get(OURS)!
  const figures = sides.slice(1).map(({ name }): Figure => {
    const theirs = cpu.get(name)!
    const spread = ratios(theirs, ours)
    return {
      name: `${setting.name}, all admitted: decisions per second of CPU time, vs. ${name}`,
      value: median(spread),
      unit: 'x',
      target: setting.targets[name],
      spread,
      note: `${inNanoseconds(ours)} vs. ${inNanoseconds(theirs)}`,
      raw: { slidegateCpuSeconds: ours, otherCpuSeconds: theirs },
    }
  })
  const plot: Plot = {
    kind: 'bars',
    name: `memory-${setting.slug}`,
    title: `CPU time per decision in memory, ${setting.name}, all admitted`,
    axis: { label: 'ns per decision' },
    series: [''],
    bars: sides.map(({ name, role }): Bar => ({ label: name, role, values: [median(cpu.get(name)!) * 1e9] })),
  }
  return { figures, plots: [plot] }
}

/** Runs one side at a time, while the others are idle. */
async function takeTurns(
  { policy, keys }: Setting,
  sides: readonly MemorySide[],
  { mode, rounds, turnMs }: Effort,
): Promise<Record<string, CpuSeconds[]>> {
  const workers = startWorkers<ToSide, CpuSeconds>(
    new URL('../memory/side-process.ts', import.meta.url),
    sides.length,
  )
  for (const [i, { name }] of sides.entries()) await workers[i]!.ask({ side: name, policy, keys })
  // The charges of a turn expire before the next one. Requests run for a window before the turn, so that charges expire during
  // the turn. With a million keys, the window of a minute covers all turns.
  const leadMs = keys === MILLION ? 0 : policy.windowMs
  const turns = await interleave(
    Object.fromEntries(sides.map(({ name }, i) => [name, () => workers[i]!.ask({ leadMs, turnMs })])),
    { ...rounds, rounds: Math.ceil(rounds.rounds / PROCESSES[mode]) },
  )
  for (const worker of workers) worker.end()
  return turns
}

/** Measures the memory of a million keys, and the longest pause while they are added. */
async function measureFilling({ mode }: Effort): Promise<Measured> {
  const sides = mode === 'short' ? MEMORY_SIDES.slice(0, 3) : MEMORY_SIDES
  const repeats = mode === 'short' ? 2 : 5
  const filled: { side: MemorySide; fillings: Filled[] }[] = []
  for (const side of sides) {
    const fillings: Filled[] = []
    for (let i = 0; i < repeats; i++) {
      const [worker] = startWorkers<Filling, Filled>(new URL('../memory/filling.ts', import.meta.url), 1)
      fillings.push(await worker!.ask({ side: side.name, keys: MILLION }))
      worker!.end()
    }
    filled.push({ side, fillings })
  }
  const bytes = ({ fillings }: (typeof filled)[number]) =>
    median(fillings.map(({ bytesPerKey }) => bytesPerKey))
  // Noise can only make pauses longer.
  const pause = ({ fillings }: (typeof filled)[number]) =>
    Math.min(...fillings.map(({ longestMs }) => longestMs))
  const each = (of: (one: (typeof filled)[number]) => number, digits: number) =>
    filled.map((one) => `${one.side.name} ${of(one).toFixed(digits)}`).join(', ')
  const bars = (of: (one: (typeof filled)[number]) => number) =>
    filled.map((one) => ({ label: one.side.name, role: one.side.role, values: [of(one)] }))
  const [ours] = filled
  return {
    figures: [
      {
        name: 'memory per key after one request, without the key, 1,000,000 keys',
        value: bytes(ours!),
        unit: 'bytes',
        target: { atMost: 120 },
        note: each(bytes, 0),
        raw: Object.fromEntries(
          filled.map(({ side, fillings }) => [side.name, fillings.map((one) => one.bytesPerKey)]),
        ),
      },
      {
        name: 'longest pause while adding 1,000,000 keys',
        value: pause(ours!),
        unit: 'ms',
        note: each(pause, 1),
        raw: Object.fromEntries(
          filled.map(({ side, fillings }) => [side.name, fillings.map((one) => one.longestMs)]),
        ),
      },
    ],
    plots: [
      {
        kind: 'bars',
        name: 'memory-bytes',
        title: 'Memory per key after one request, 1,000,000 keys',
        axis: { label: 'bytes, without the key' },
        series: [''],
        bars: bars(bytes),
      },
      {
        kind: 'bars',
        name: 'memory-pauses',
        title: 'Longest pause while adding 1,000,000 keys',
        axis: { label: 'ms' },
        series: [''],
        bars: bars(pause),
      },
    ],
  }
}

function inNanoseconds(seconds: readonly number[]): string {
  return `${(median(seconds) * 1e9).toFixed(0)} ns`
}
