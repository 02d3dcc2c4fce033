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

const DECISIONS = { short: 200_000, full: 1_000_000 }

export const memory: Scenario = {
  name: 'memory',
  title: "The memory store's consumeSync, against rate-limiter-flexible's RateLimiterMemory",
  run: async (effort) => {
    const figures: Figure[] = []
    for (const setting of SETTINGS) figures.push(await measure(setting, effort))
    return figures
  },
}

async function measure(setting: Setting, { mode, rounds }: Effort): Promise<Figure> {
  const decisions = DECISIONS[mode]
  const { limit } = setting
  const keys = callers(setting.keys)

  const limiter = createLimiter({ limits: [slidingWindow({ limit, window: '1s' })], store: memoryStore() })
  const audits = Array.from({ length: setting.audited }, () => new Audit(limit, 1000))
  const pick = anyOf(keys.length)
  const slidegate = async () => {
    const start = performance.now()
    for (let i = 0; i < decisions; i++) {
      const index = pick()
      const decision = limiter.consumeSync(keys[index]!)
      if (!decision.allowed) throw new Error('denied with room left')
      if (index < audits.length) audits[index]!.record(decision)
    }
    const rate = perSecond(decisions, start)
    for (const audit of audits) audit.verify()
    return rate
  }

  const peer = new RateLimiterMemory({ points: limit, duration: 1 })
  const pickPeer = anyOf(keys.length)
  const peerTurn = async () => {
    const start = performance.now()
    for (let i = 0; i < decisions; i++) {
      // Rejects where it denies.
      const { consumedPoints } = await peer.consume(keys[pickPeer()]!)
      if (!(consumedPoints > 0)) throw new Error('nothing was counted')
    }
    return perSecond(decisions, start)
  }

  const turns = await interleave({ slidegate, peer: peerTurn }, rounds)
  limiter.close()
  const spread = ratios(turns.slidegate, turns.peer)
  return {
    name: `${setting.name}, all admitted: decisions per second`,
    value: median(spread),
    unit: 'x',
    target: setting.target,
    spread,
    note: `${inMillions(turns.slidegate)} a second against ${inMillions(turns.peer)}; limit ${limit} per second`,
    raw: { slidegatePerSecond: turns.slidegate, peerPerSecond: turns.peer },
  }
}

function perSecond(decisions: number, startMs: number): number {
  return decisions / ((performance.now() - startMs) / 1000)
}

function inMillions(rates: readonly number[]): string {
  return `${(median(rates) / 1e6).toFixed(2)}M`
}
