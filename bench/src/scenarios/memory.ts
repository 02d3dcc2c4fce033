import { RateLimiterMemory } from 'rate-limiter-flexible'
import { createLimiter, memoryStore, slidingWindow } from 'slidegate'
import { Audit } from '../audit.ts'
import { anyOf, callers } from '../callers.ts'
import { interleave, median, ratios } from '../measure.ts'
import type { Effort, Figure, Scenario, Target } from '../scenario.ts'

interface Setting {
  readonly name: string
  readonly keys: number
  /** Per second; more than is asked for. */
  readonly limit: number
  /** Keys of which every answer is verified. */
  readonly audited: number
  readonly target?: Target
}

const SETTINGS: readonly Setting[] = [
  { name: '10,000 keys', keys: 10_000, limit: 2000, audited: 16, target: { atLeast: 1 } },
  { name: 'one key', keys: 1, limit: 100_000_000, audited: 1 },
]

/** Per turn. Turns are short and many, so that the sides meet with the same disturbances. */
const DECISIONS = 100_000
const TURNS = 3

export const memory: Scenario = {
  name: 'memory',
  title: "The memory store's consumeSync, against rate-limiter-flexible's RateLimiterMemory",
  run: async (effort) => {
    const figures: Figure[] = []
    for (const setting of SETTINGS) figures.push(await measure(setting, effort))
    return figures
  },
}

async function measure(setting: Setting, { rounds: { warmUps, rounds } }: Effort): Promise<Figure> {
  const { limit } = setting
  const keys = callers(setting.keys)

  const limiter = createLimiter({ limits: [slidingWindow({ limit, window: '1s' })], store: memoryStore() })
  const audits = Array.from({ length: setting.audited }, () => new Audit(limit, 1000))
  const pick = anyOf(keys.length)
  const slidegate = async () => {
    const time = stopwatch()
    for (let i = 0; i < DECISIONS; i++) {
      const index = pick()
      const decision = limiter.consumeSync(keys[index]!)
      if (!decision.allowed) throw new Error('denied with room left')
      if (index < audits.length) audits[index]!.record(decision)
    }
    const turn = time()
    for (const audit of audits) audit.verify()
    return turn
  }

  const peerLimiter = new RateLimiterMemory({ points: limit, duration: 1 })
  const pickPeer = anyOf(keys.length)
  const peer = async () => {
    const time = stopwatch()
    for (let i = 0; i < DECISIONS; i++) {
      // Rejects where it denies.
      const { consumedPoints } = await peerLimiter.consume(keys[pickPeer()]!)
      if (!(consumedPoints > 0)) throw new Error('nothing was counted')
    }
    return time()
  }

  const turns = await interleave({ slidegate, peer }, { warmUps: TURNS * warmUps, rounds: TURNS * rounds })
  limiter.close()
  return figureOf(setting, turns.slidegate, turns.peer)
}

interface Turn {
  readonly seconds: number
  /** CPU time of this process, all of its threads. */
  readonly cpuSeconds: number
}

function stopwatch(): () => Turn {
  const cpu = process.cpuUsage()
  const start = performance.now()
  return () => {
    const seconds = (performance.now() - start) / 1000
    const { user, system } = process.cpuUsage(cpu)
    return { seconds, cpuSeconds: (user + system) / 1e6 }
  }
}

function figureOf({ name, limit, target }: Setting, ours: readonly Turn[], peer: readonly Turn[]): Figure {
  const [ourCpu, peerCpu] = [ours.map(cpuOf), peer.map(cpuOf)]
  const [ourSeconds, peerSeconds] = [ours.map(secondsOf), peer.map(secondsOf)]
  const spread = ratios(peerCpu, ourCpu)
  return {
    name: `${name}, all admitted: decisions per second of CPU time`,
    value: median(spread),
    unit: 'x',
    target,
    spread,
    note:
      `${inMillions(ourCpu)} against ${inMillions(peerCpu)}; by the clock ` +
      `${inMillions(ourSeconds)} against ${inMillions(peerSeconds)}; limit ${limit} per second`,
    raw: { slidegateCpuSeconds: ourCpu, peerCpuSeconds: peerCpu, slidegateSeconds: ourSeconds, peerSeconds },
  }
}

/** Per decision, as are {@link secondsOf}. */
function cpuOf({ cpuSeconds }: Turn): number {
  return cpuSeconds / DECISIONS
}

function secondsOf({ seconds }: Turn): number {
  return seconds / DECISIONS
}

/** Decisions in a second, given the time of one. */
function inMillions(seconds: readonly number[]): string {
  return `${(1 / median(seconds) / 1e6).toFixed(2)}M`
}
