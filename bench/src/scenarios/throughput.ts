import assert from 'node:assert/strict'
import type { Redis } from 'ioredis'
import { createLimiter, type Decision, type Limiter, slidingWindow } from 'slidegate'
import { redisStore } from 'slidegate/redis'
import { Audit } from '../audit.ts'
import { anyOf, callers } from '../callers.ts'
import { boundToCores, type Cores } from '../cores.ts'
import { clientCpuOf, closedLoop, type Load, perSecond, type Requests } from '../load.ts'
import { interleave, median, ratios } from '../measure.ts'
import { floorScript } from '../redis/floor.ts'
import { withRedis } from '../redis/with-redis.ts'
import type { Effort, Figure, Scenario, Target } from '../scenario.ts'

interface Setting {
  readonly name: string
  readonly keys: number
  readonly inFlight: number
  readonly limit: number
  readonly windowMs: number
  /** What every single decision is. */
  readonly outcome: 'admitted' | 'denied'
  /** One at a time it is the time of a decision that is compared, else how many there are in a second. */
  readonly compares: 'rate' | 'time'
  /** Where client and Redis run if they are bound to cores: as one would have it. */
  readonly cores: Cores
  readonly target: Target
}

/** Keys of which every answer is verified, where there are many. */
const AUDITED_KEYS = 16

const MANY = {
  keys: 10_000,
  inFlight: 1024,
  compares: 'rate',
  cores: 'apart',
  target: { atLeast: 1.7 },
} as const
const HOT = { keys: 1, inFlight: 1024, compares: 'rate', cores: 'apart', target: { atLeast: 15 } } as const
const ALONE = {
  keys: 10_000,
  inFlight: 1,
  compares: 'time',
  cores: 'together',
  target: { atMost: 1.5 },
} as const

// Limits far above any load, in windows that charges do leave meanwhile; and limits that were used up before.
const ROOMY = { limit: 100, windowMs: 1000, outcome: 'admitted' } as const
const ROOMY_HOT = { limit: 10_000_000, windowMs: 1000, outcome: 'admitted' } as const
const USED_UP = { limit: 10, windowMs: 3_600_000, outcome: 'denied' } as const

const UNDER_LOAD: readonly Setting[] = [
  { name: '10,000 keys, 1,024 in flight', ...MANY, ...ROOMY },
  { name: '10,000 keys, 1,024 in flight', ...MANY, ...USED_UP },
  { name: 'one hot key, 1,024 in flight', ...HOT, ...ROOMY_HOT },
  { name: 'one hot key, 1,024 in flight', ...HOT, ...USED_UP },
]

const ONE_AT_A_TIME: readonly Setting[] = [
  { name: '10,000 keys, one at a time', ...ALONE, ...ROOMY },
  { name: '10,000 keys, one at a time', ...ALONE, ...USED_UP },
]

export const throughput: Scenario = {
  name: 'throughput',
  title: 'Decisions through one client under load, against one EVALSHA of `return 1` per request through it',
  run: (effort) => measureAll(UNDER_LOAD, effort),
}

export const oneAtATime: Scenario = {
  name: 'one-at-a-time',
  title:
    'Time of a decision with no other under way, against an EVALSHA of `return 1` through the same client',
  run: (effort) => measureAll(ONE_AT_A_TIME, effort),
}

async function measureAll(settings: readonly Setting[], effort: Effort): Promise<Figure[]> {
  const figures: Figure[] = []
  for (const setting of settings) {
    const measured = await withRedis((redis, pid) => {
      const use = () => measure(redis, setting, effort)
      return effort.isPinned ? boundToCores(pid, setting.cores, use) : use()
    })
    figures.push(...measured)
  }
  return figures
}

async function measure(redis: Redis, setting: Setting, { rounds, turnMs }: Effort): Promise<Figure[]> {
  const { inFlight, limit, windowMs } = setting
  const limiter = createLimiter({
    name: 'bench',
    limits: [slidingWindow({ limit, window: windowMs })],
    store: redisStore(redis),
    // Nobody gives up in a bench, however busy the machine.
    timeoutMs: 60_000,
  })
  const keys = callers(setting.keys)
  if (setting.outcome === 'denied') await useUp(limiter, keys, limit)
  const audits = auditsOf(setting)
  const decisions: Requests<Decision> = {
    pick: anyOf(keys.length),
    ask: (caller) => limiter.consume(keys[caller]!),
    check: setting.outcome === 'admitted' ? isAdmitted(audits) : isDenied(windowMs),
  }

  const floor = await floorScript(redis)
  const floorKeys = keys.map((key) => `floor:{0}:bench:${key}:w1`)
  const floorCalls: Requests<unknown> = {
    pick: anyOf(keys.length),
    ask: (caller) => floor(floorKeys[caller]!),
    check: (answer) => {
      if (answer !== 1) throw new Error('the script did not return 1')
    },
  }

  const turns = await interleave(
    {
      slidegate: async () => {
        const load = await closedLoop(inFlight, { ms: turnMs }, decisions)
        for (const audit of audits) audit.verify()
        return load
      },
      floor: () => closedLoop(inFlight, { ms: turnMs }, floorCalls),
    },
    rounds,
  )
  limiter.close()
  return figuresOf(setting, turns.slidegate, turns.floor)
}

/** Asks `limit` times for each key, so that nothing fits any more. */
async function useUp(limiter: Limiter, keys: readonly string[], limit: number): Promise<void> {
  for (let i = 0; i < limit; i++) {
    const decisions = await Promise.all(keys.map((key) => limiter.consume(key)))
    assert(decisions.every(({ allowed }) => allowed))
  }
}

function auditsOf({ outcome, keys, limit, windowMs }: Setting): Audit[] {
  const audited = outcome === 'admitted' ? Math.min(keys, AUDITED_KEYS) : 0
  return Array.from({ length: audited }, () => new Audit(limit, windowMs))
}

/** A limit with room admits; of the first keys it is written down, to be verified when nothing is being measured. */
function isAdmitted(audits: readonly Audit[]): (decision: Decision, caller: number) => void {
  return (decision, caller) => {
    if (!decision.allowed || decision.source !== 'store') throw new Error(`not admitted: ${show(decision)}`)
    if (caller < audits.length) audits[caller]!.record(decision)
  }
}

/** A limit that is used up denies, and says when it no longer will. */
function isDenied(windowMs: number): (decision: Decision) => void {
  return (decision) => {
    const { allowed, retryAfterMs, source } = decision
    if (allowed || source !== 'store' || !(retryAfterMs > 0 && retryAfterMs <= windowMs)) {
      throw new Error(`not denied: ${show(decision)}`)
    }
  }
}

function show(decision: Decision): string {
  return JSON.stringify(decision)
}

function figuresOf(setting: Setting, ours: readonly Load[], floor: readonly Load[]): Figure[] {
  const { limit, windowMs, outcome, compares, target } = setting
  const name = `${setting.name}, all ${outcome}`
  const [ourRate, floorRate] = [ours.map(perSecond), floor.map(perSecond)]
  const [ourCpu, floorCpu] = [ours.map(clientCpuOf), floor.map(clientCpuOf)]
  const isRate = compares === 'rate'
  const speed = isRate ? ratios(ourRate, floorRate) : ratios(floorRate, ourRate)
  const cpu = ratios(ourCpu, floorCpu)
  const absolute = isRate
    ? `${inThousands(ourRate)} a second against ${inThousands(floorRate)}`
    : `${inMicroseconds(ourRate.map(inverse))} against ${inMicroseconds(floorRate.map(inverse))}`
  return [
    {
      name: `${name}: ${isRate ? 'decisions per second' : 'time per decision'}`,
      value: median(speed),
      unit: 'x',
      target,
      spread: speed,
      note: `${absolute}; limit ${limit} per ${windowMs} ms`,
      raw: { slidegatePerSecond: ourRate, floorPerSecond: floorRate },
    },
    {
      name: `${name}: client CPU per decision`,
      value: median(cpu),
      unit: 'x',
      spread: cpu,
      note: `${inMicroseconds(ourCpu)} against ${inMicroseconds(floorCpu)}`,
      raw: { slidegateSeconds: ourCpu, floorSeconds: floorCpu },
    },
  ]
}

function inverse(rate: number): number {
  return 1 / rate
}

function inThousands(rates: readonly number[]): string {
  return `${(median(rates) / 1000).toFixed(1)}k`
}

function inMicroseconds(seconds: readonly number[]): string {
  return `${(median(seconds) * 1e6).toFixed(2)} µs`
}
