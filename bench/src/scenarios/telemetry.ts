import { MeterProvider, MetricReader } from '@opentelemetry/sdk-metrics'
import { BasicTracerProvider, type ReadableSpan, type SpanProcessor } from '@opentelemetry/sdk-trace-base'
import { createLimiter, type Decision, type Limiter, memoryStore, slidingWindow } from 'slidegate'
import { DecisionCounts } from 'slidegate/metrics'
import { measure, traced } from 'slidegate/opentelemetry'
import { type RedisStore, redisStore } from 'slidegate/redis'
import { everyByTimer } from '../../../packages/server/src/admin/timer.ts'
import { Usage } from '../../../packages/server/src/admin/usage.ts'
import { anyOf, callers } from '../callers.ts'
import { boundToCores } from '../cores.ts'
import { inMicroseconds, inThousands } from '../format.ts'
import { clientCpuOf, closedLoop, type Extent, type Load, perSecond } from '../load.ts'
import { interleave, median, ratios } from '../measure.ts'
import { withRedis } from '../redis/with-redis.ts'
import type { BarPlot } from '../report/plot.ts'
import type { Effort, Figure, Measured, Scenario, Target } from '../scenario.ts'
import { watchedService } from '../service/watched.ts'
import { PATIENCE_MS } from '../sides.ts'

interface Watched {
  readonly limiter: Limiter
  /** Collects metrics. Called occasionally. */
  collect?(): Promise<unknown>
  close?(): Promise<unknown>
}

interface Way {
  readonly name: string
  watch(limiter: Limiter, store?: RedisStore): Watched
  /** The target, compared with a limiter without telemetry. */
  readonly target?: Target
}

const GOAL: Target = { atLeast: 0.97 }
const OFF = 'no telemetry'

const none: Way = { name: OFF, watch: (limiter) => ({ limiter }) }

/** Sides that take turns. The groups are separate, so that the garbage of exported spans doesn't slow other sides. */
const GROUPS: readonly (readonly Way[])[] = [
  [
    none,
    // Shows the noise between two equal sides.
    { ...none, name: 'no telemetry, repeated' },
    { name: 'DecisionCounts', watch: counted, target: GOAL },
    // No target, because the service's requests take ten times as long.
    { name: 'DecisionCounts and the service sketches', watch: sketched },
    { name: 'measure(), collected', watch: measured, target: GOAL },
  ],
  [none, { name: 'traced() without an SDK', watch: (limiter) => ({ limiter: traced(limiter) }) }],
  [none, { name: 'traced(), spans kept for an exporter', watch: spanned }],
]

function counted(limiter: Limiter): Watched {
  const counts = new DecisionCounts()
  limiter.on('decision', ({ decision }) => counts.add(decision))
  return { limiter }
}

function sketched(limiter: Limiter): Watched {
  const counts = new DecisionCounts()
  const usage = new Usage(undefined, everyByTimer)
  limiter.on('decision', ({ key, decision }) => {
    counts.add(decision)
    usage.record(limiter.name, key, decision)
  })
  return { limiter, close: async () => usage.close() }
}

class Reader extends MetricReader {
  protected override async onShutdown(): Promise<void> {}
  protected override async onForceFlush(): Promise<void> {}
}

function measured(limiter: Limiter, store?: RedisStore): Watched {
  const reader = new Reader()
  const provider = new MeterProvider({ readers: [reader] })
  measure(limiter, { meter: provider.getMeter('bench'), store })
  return { limiter, collect: () => reader.collect(), close: () => provider.shutdown() }
}

/** Keeps spans until they fill a batch. The SDK's processor drops most of them at this load. */
class Batches implements SpanProcessor {
  #spans: ReadableSpan[] = []

  onStart(): void {}

  onEnd(span: ReadableSpan): void {
    this.#spans.push(span)
    if (this.#spans.length === 512) this.#spans = []
  }

  async forceFlush(): Promise<void> {}
  async shutdown(): Promise<void> {}
}

function spanned(limiter: Limiter): Watched {
  const provider = new BasicTracerProvider({ spanProcessors: [new Batches()] })
  const tracer = provider.getTracer('bench')
  return { limiter: traced(limiter, { tracer }), close: () => provider.shutdown() }
}

const ROOMY = slidingWindow({ limit: 100_000_000, window: '1s' })
const KEYS = callers(10_000)

/** Time between two collections, a tenth of a usual interval. */
const COLLECT_MS = 1000

/** Requests between two readings of the clock, in memory. */
const STRIDE = 1000

const ON_REDIS = 'on Redis, 10,000 keys, 1,024 in flight'
const IN_MEMORY = 'in memory, consumeSync, one key'

export const telemetry: Scenario = {
  name: 'telemetry',
  title:
    'The cost of telemetry: decisions that are counted, measured or traced, compared with decisions without telemetry',
  async run(effort): Promise<Measured> {
    const figures: Figure[] = []
    for (const ways of GROUPS) {
      const onRedis = await withRedis((redis, pid) => {
        const use = () =>
          takeTurns(ways, effort, ({ watch }) => {
            const store = redisStore(redis)
            const limiter = createLimiter({ name: 'bench', limits: [ROOMY], store, timeoutMs: PATIENCE_MS })
            const watched = watch(limiter, store)
            return { watched, load: (extent) => inFlight(1024, extent, watched.limiter) }
          })
        return effort.isPinned ? boundToCores(pid, 'apart', use) : use()
      })
      figures.push(...figuresOf(ON_REDIS, ways, onRedis))
    }
    for (const ways of GROUPS) {
      const inMemory = await takeTurns(ways, effort, ({ watch }) => {
        const watched = watch(createLimiter({ name: 'bench', limits: [ROOMY], store: memoryStore() }))
        return { watched, load: (extent) => atOnce(extent, watched.limiter) }
      })
      // No target, because a decision in memory takes about as long as reading a clock, so any telemetry is noticeable.
      const found = figuresOf(IN_MEMORY, ways, inMemory)
      figures.push(...found.map(({ target: _, ...figure }) => figure))
    }
    figures.push(...(await watchedService(effort)))
    const plots = [
      plotOf('telemetry-redis', 'A limiter on Redis', `${ON_REDIS}, `, figures),
      plotOf('telemetry-memory', 'A limiter in memory, consumeSync', `${IN_MEMORY}, `, figures),
      plotOf('telemetry-service', 'The service', 'service, ', figures),
    ]
    return { figures, plots }
  },
}

type Turns = Readonly<Record<string, readonly Load[]>>

/** Runs all kinds of telemetry in turns. */
async function takeTurns(
  ways: readonly Way[],
  { rounds, turnMs }: Effort,
  open: (way: Way) => { readonly watched: Watched; load(extent: Extent): Promise<Load> },
): Promise<Turns> {
  const opened = ways.map((way) => ({ name: way.name, uncollectedMs: 0, ...open(way) }))
  const turn = async (side: (typeof opened)[number]): Promise<Load> => {
    const { watched, load } = side
    const cpu = process.cpuUsage()
    const start = performance.now()
    const { requests } = await load({ ms: turnMs })
    side.uncollectedMs += turnMs
    if (side.uncollectedMs >= COLLECT_MS) {
      side.uncollectedMs = 0
      await watched.collect?.()
    }
    const { user, system } = process.cpuUsage(cpu)
    const seconds = (performance.now() - start) / 1000
    return { requests, seconds, clientCpuSeconds: (user + system) / 1e6 }
  }
  const turns = await interleave(
    Object.fromEntries(opened.map((each) => [each.name, () => turn(each)])),
    rounds,
  )
  for (const { watched } of opened) {
    watched.limiter.close()
    await watched.close?.()
  }
  return turns
}

/** Plots the figures whose names begin with `begin`. */
function plotOf(name: string, subject: string, begin: string, figures: readonly Figure[]): BarPlot {
  const end = ': decisions per second'
  const shown = figures.filter((figure) => figure.name.startsWith(begin) && figure.name.endsWith(end))
  return {
    kind: 'bars',
    name,
    title: `${subject}: decisions per second with telemetry, compared with none`,
    axis: { label: 'ratio to no telemetry' },
    series: [''],
    bars: shown.map(({ name, value }) => ({
      label: name.slice(begin.length, -end.length),
      role: name.endsWith(`repeated${end}`) ? 'floor' : 'ours',
      values: [value],
    })),
    mark: { label: 'no telemetry', value: 1 },
  }
}

function inFlight(count: number, extent: Extent, limiter: Limiter): Promise<Load> {
  return closedLoop(count, extent, {
    pick: anyOf(KEYS.length),
    ask: (caller) => limiter.consume(KEYS[caller]!),
    check: checkAdmitted,
  })
}

async function atOnce(extent: Extent, limiter: Limiter): Promise<Load> {
  const untilMs = performance.now() + ('ms' in extent ? extent.ms : 0)
  let requests = 0
  for (; performance.now() < untilMs; requests += STRIDE) {
    for (let i = 0; i < STRIDE; i++) checkAdmitted(limiter.consumeSync('user:1'))
  }
  return { requests, seconds: 0, clientCpuSeconds: 0 }
}

function checkAdmitted({ allowed, source }: Decision): void {
  if (!allowed || source !== 'store')
    throw new Error(`Expected an admission by the store, got the source ${source}`)
}

function figuresOf(where: string, ways: readonly Way[], turns: Turns): Figure[] {
  const [offRate, offCpu] = [turns[OFF]!.map(perSecond), turns[OFF]!.map(clientCpuOf)]
  return ways.slice(1).flatMap(({ name, target }): Figure[] => {
    const [rate, cpu] = [turns[name]!.map(perSecond), turns[name]!.map(clientCpuOf)]
    const [faster, cheaper] = [ratios(rate, offRate), ratios(cpu, offCpu)]
    return [
      {
        name: `${where}, ${name}: decisions per second`,
        value: median(faster),
        unit: 'x',
        ...(target && { target }),
        spread: faster,
        note: `${inThousands(rate)}/s vs. ${inThousands(offRate)}/s`,
        raw: { perSecond: rate, offPerSecond: offRate },
      },
      {
        name: `${where}, ${name}: client CPU per decision`,
        value: median(cheaper),
        unit: 'x',
        spread: cheaper,
        note: `${inMicroseconds(cpu)} vs. ${inMicroseconds(offCpu)}`,
        raw: { cpuSeconds: cpu, offCpuSeconds: offCpu },
      },
    ]
  })
}
