import type { Redis } from 'ioredis'
import { bytesFigures } from '../kinds/bytes.ts'
import { KINDS, type KindUse } from '../kinds/kinds.ts'
import { MIXED_TRAFFIC, MIXES, type Mix } from '../kinds/mixes.ts'
import { interleave, ratios, sum } from '../measure.ts'
import { withRedis } from '../redis/with-redis.ts'
import type { Effort, Figure, Scenario } from '../scenario.ts'
import { slidegateCpuSide } from '../steady/ours.ts'
import { scriptCpuSide } from '../steady/sides.ts'
import { EVERY_MS, type Traffic } from '../steady/traffic.ts'
import { assertFull, type CpuSide, type CpuTurn } from '../steady/turn.ts'

const OURS = 'slidegate'
const TARGET = { atMost: 1.2 }
const MIXED_TARGET = { atMost: 1.6 }

export const kinds: Scenario = {
  name: 'kinds',
  title:
    'Each kind of limit: Redis CPU time per decision vs. the best common script, several kinds in one limiter, and memory',
  async run(effort) {
    const figures: Figure[] = []
    for (const kind of KINDS) {
      for (const traffic of kind.traffics) {
        figures.push(await withRedis((redis) => vsScript(redis, kind, traffic, effort)))
      }
    }
    for (const mix of MIXES) {
      for (const traffic of MIXED_TRAFFIC) {
        figures.push(await withRedis((redis) => vsParts(redis, mix, traffic, effort)))
      }
    }
    return [...figures, ...(await bytesFigures())]
  },
}

async function vsScript(redis: Redis, kind: KindUse, traffic: Traffic, effort: Effort): Promise<Figure> {
  const { script } = kind
  const side = await slidegateCpuSide(redis, OURS, traffic, { ...kind, limits: [kind.limit(traffic)] })
  const turns = await measure([side, await scriptCpuSide(redis, script, traffic, kind)], traffic, effort)
  if (kind.staysFull) for (const turn of turns.values()) assertFull(turn)
  const [ours, theirs] = [secondsOf(turns, OURS), secondsOf(turns, script.name)]
  return {
    name: `${kind.name}, limit ${traffic.limit}, all ${traffic.outcome}: vs. the ${script.name}`,
    value: mean(ours) / mean(theirs),
    unit: 'x',
    target: TARGET,
    spread: ratios(ours, theirs),
    note: `${inMicroseconds(ours)} vs. ${inMicroseconds(theirs)}; ${side.batchSize()} decisions per call`,
    raw: { [`${OURS} seconds`]: ours, [`${script.name} seconds`]: theirs },
  }
}

/** Compares several limits in one limiter with the most expensive of them alone. */
async function vsParts(redis: Redis, mix: Mix, traffic: Traffic, effort: Effort): Promise<Figure> {
  const limits = mix.limits(traffic)
  const side = await slidegateCpuSide(redis, OURS, traffic, { ...mix, limits })
  const sides = [side]
  for (const limit of limits) {
    const values = limit.kind.entries?.are === 'value' ? mix.values : undefined
    sides.push(await slidegateCpuSide(redis, limit.name, traffic, { limits: [limit], values }))
  }
  const turns = await measure(sides, traffic, effort)
  assertFull(turns.get(OURS)!)
  const all = secondsOf(turns, OURS)
  const alone = limits.map(({ name }) => ({ name, seconds: secondsOf(turns, name) }))
  const costliest = alone.reduce((a, b) => (mean(b.seconds) > mean(a.seconds) ? b : a))
  const formatted = alone.map(({ name, seconds }) => `${name} ${inMicroseconds(seconds)}`).join(', ')
  return {
    name: `${mix.name}, ${traffic.inFlight === 1 ? 'one at a time, ' : ''}all ${traffic.outcome}: vs. the most expensive one alone`,
    value: mean(all) / mean(costliest.seconds),
    unit: 'x',
    target: MIXED_TARGET,
    spread: ratios(all, costliest.seconds),
    note: `${inMicroseconds(all)}; alone: ${formatted}; ${side.batchSize()} decisions per call`,
    raw: {
      seconds: all,
      ...Object.fromEntries(alone.map(({ name, seconds }) => [`${name} seconds`, seconds])),
    },
  }
}

type Turns = ReadonlyMap<string, readonly CpuTurn[]>

async function measure(sides: readonly CpuSide[], { outcome }: Traffic, effort: Effort): Promise<Turns> {
  const turns = await interleave(Object.fromEntries(sides.map((side) => [side.name, side.turn])), {
    ...effort.rounds,
    everyMs: outcome === 'admitted' ? EVERY_MS : 0,
  })
  for (const side of sides) side.close()
  return new Map(Object.entries(turns))
}

function secondsOf(turns: Turns, side: string): number[] {
  return turns.get(side)!.map(({ seconds }) => seconds)
}

function mean(numbers: readonly number[]): number {
  return sum(numbers) / numbers.length
}

function inMicroseconds(seconds: readonly number[]): string {
  return `${(mean(seconds) * 1e6).toFixed(2)} µs`
}
