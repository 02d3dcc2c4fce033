import { anyOf, callers, inTurn } from '../callers.ts'
import { interleave, median, ratios } from '../measure.ts'
import type { Filled, Filling } from '../memory/filling.ts'
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
  /** What each is to be, by the name of the other side. */
  readonly targets: Readonly<Record<string, Target>>
}

const OURS = 'slidegate'
const FLOOR = 'Map, clock, literal'
const PEER = 'rate-limiter-flexible'
const MILLION = 1_000_000

// Limits are more than is asked for.
const SETTINGS: readonly Setting[] = [
  {
    name: 'one key',
    slug: 'one-key',
    keys: 1,
    policy: { limit: 100_000_000, windowMs: 1000 },
    targets: { [PEER]: { atLeast: 2 }, [FLOOR]: { atLeast: 0.7 } },
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

/** Requests between two looks at the clock. */
const BATCH = 1000

export const memory: Scenario = {
  name: 'memory',
  title: 'Stores in memory: consumeSync against the packages of others and a bare Map',
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

/**
 * Who takes turns with whom. Few at a time, since what one side holds is in the way of the others: of the
 * garbage collection, and in the caches. Short, only those that there are targets for.
 */
function groupsOf({ mode }: Effort, keys: number): readonly (readonly MemorySide[])[] {
  const [ours, floor, peer, ...others] = MEMORY_SIDES
  if (mode === 'short') return [keys === MILLION ? [ours!, floor!] : [ours!, floor!, peer!]]
  const possible = others.filter(({ slowsDown }) => !slowsDown || keys > 1)
  return [[ours!, floor!, peer!], ...possible.map((other) => [ours!, other])]
}

/** CPU time per decision, of all threads of this process. */
interface Turn {
  readonly cpuSeconds: number
}

async function measureSpeed(setting: Setting, effort: Effort): Promise<Measured> {
  const figures: Figure[] = []
  const bars: Bar[] = []
  for (const group of groupsOf(effort, setting.keys)) {
    const measured = await measureGroup(setting, group, effort)
    figures.push(...measured.figures)
    // Ours is in all of them, and drawn once.
    bars.push(...(bars.length === 0 ? measured.bars : measured.bars.slice(1)))
  }
  const plot: Plot = {
    kind: 'bars',
    name: `memory-${setting.slug}`,
    title: `CPU time of a decision in memory, ${setting.name}, all admitted`,
    axis: { label: 'ns per decision' },
    series: [''],
    bars,
  }
  return { figures, plots: [plot] }
}

async function measureGroup(
  setting: Setting,
  group: readonly MemorySide[],
  effort: Effort,
): Promise<{ figures: Figure[]; bars: Bar[] }> {
  const keys = callers(setting.keys)
  const sides = group.map((side) => {
    const opened = side.open(setting.policy, keys)
    return { ...side, opened, pick: anyOf(keys.length) }
  })
  // From the first turn on, each holds all keys.
  if (keys.length > 1) for (const { opened } of sides) await opened.decide(inTurn(keys.length), keys.length)
  const turn = async ({ opened, pick }: (typeof sides)[number]): Promise<Turn> => {
    const cpu = process.cpuUsage()
    const untilMs = performance.now() + effort.turnMs
    let decisions = 0
    for (; performance.now() < untilMs; decisions += BATCH) await opened.decide(pick, BATCH)
    const { user, system } = process.cpuUsage(cpu)
    opened.verify?.()
    return { cpuSeconds: (user + system) / 1e6 / decisions }
  }
  // Turns are long: in the beginning of each, nothing of a side is in the caches of the processor.
  const turns = await interleave(
    Object.fromEntries(sides.map((side) => [side.name, () => turn(side)])),
    effort.rounds,
  )
  for (const { opened } of sides) opened.close?.()

  const cpu = (name: string) => turns[name]!.map(({ cpuSeconds }) => cpuSeconds)
  const figures = sides.slice(1).map(({ name }): Figure => {
    const spread = ratios(cpu(name), cpu(OURS))
    return {
      name: `${setting.name}, all admitted: decisions per second of CPU time, against ${name}`,
      value: median(spread),
      unit: 'x',
      target: setting.targets[name],
      spread,
      note: `${inNanoseconds(cpu(OURS))} against ${inNanoseconds(cpu(name))}`,
      raw: { slidegateCpuSeconds: cpu(OURS), otherCpuSeconds: cpu(name) },
    }
  })
  const bars = sides.map(({ name, role }): Bar => ({ label: name, role, values: [median(cpu(name)) * 1e9] }))
  return { figures, bars }
}

/** What a million keys take up, and for how long others wait while they come. */
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
  // Whatever else runs on the machine makes it longer, nothing makes it shorter.
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
        name: 'memory of a key with one hit, beyond the key itself, 1,000,000 keys',
        value: bytes(ours!),
        unit: 'bytes',
        target: { atMost: 120 },
        note: each(bytes, 0),
        raw: Object.fromEntries(
          filled.map(({ side, fillings }) => [side.name, fillings.map((one) => one.bytesPerKey)]),
        ),
      },
      {
        name: 'the longest wait of others while 1,000,000 keys come',
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
        title: 'Memory of a key with one hit, 1,000,000 keys',
        axis: { label: 'bytes, beyond the key itself' },
        series: [''],
        bars: bars(bytes),
      },
      {
        kind: 'bars',
        name: 'memory-pauses',
        title: 'The longest wait of others while 1,000,000 keys come',
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
