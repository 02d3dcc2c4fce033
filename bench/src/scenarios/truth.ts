import assert from 'node:assert/strict'
import { withRedis } from '../redis/with-redis.ts'
import type { BarPlot } from '../report/plot.ts'
import type { Figure, Measured, Scenario, Target } from '../scenario.ts'
import { measureBurst } from '../truth/burst.ts'
import { measureHammering } from '../truth/hammer.ts'
import type { Verdict } from '../truth/judge.ts'

/** How long the processes send requests. */
const HAMMERING_MS = { short: 4000, full: 15_000 }

const NEVER_OVER: Target = { atMost: 100 }
const NEVER_UNDER: Target = { atLeast: 100 }

export const truth: Scenario = {
  name: 'truth',
  title:
    'Requests admitted in the fullest window with a limit of 100 per second, and in total compared with an ideal limiter',
  async run({ mode }): Promise<Measured> {
    const burst = await withRedis(measureBurst)
    const hammering = await measureHammering(HAMMERING_MS[mode])
    return {
      figures: [...figuresOf('burst at a window boundary', burst), ...figuresOf('8 processes', hammering)],
      plots: [
        plotOf('truth-burst', 'A burst at a window boundary', burst),
        plotOf('truth-processes', '8 processes hammering one key on one Redis', hammering),
      ],
    }
  },
}

function figuresOf(what: string, verdicts: readonly Verdict[]): Figure[] {
  return verdicts.flatMap(({ name, isOurs, fullestPercent, admittedPercent, requests }) => {
    assert(fullestPercent > 50, `${name}: the traffic doesn't fill windows`)
    const fullest: Figure = {
      name: `${what}, ${name}: fullest window`,
      value: fullestPercent,
      unit: '%',
      target: isOurs ? NEVER_OVER : undefined,
      note: `${requests} requests; admitted ${admittedPercent.toFixed(1)}% of an ideal limiter`,
      raw: { fullestPercent: [fullestPercent], admittedPercent: [admittedPercent] },
    }
    if (!isOurs) return [fullest]
    const admitted: Figure = {
      name: `${what}, ${name}: admitted, compared with an ideal limiter`,
      value: admittedPercent,
      unit: '%',
      target: NEVER_UNDER,
      raw: { admittedPercent: [admittedPercent] },
    }
    return [fullest, admitted]
  })
}

function plotOf(name: string, title: string, verdicts: readonly Verdict[]): BarPlot {
  return {
    kind: 'bars',
    name,
    title,
    note: 'At most 100% of the limit in the fullest window means that the limit was never exceeded. Exactly 100% of an ideal limiter means that no request was denied needlessly.',
    axis: { label: 'percent' },
    series: ['fullest window, % of the limit', 'admitted, % of an ideal limiter'],
    bars: verdicts.map(({ name, isOurs, fullestPercent, admittedPercent }) => ({
      label: name,
      role: isOurs ? 'ours' : 'peer',
      values: [fullestPercent, admittedPercent],
    })),
    mark: { label: '100%', value: 100 },
  }
}
