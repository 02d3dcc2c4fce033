import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { RampReport } from '../../../packages/server/src/load/run-ramp.ts'
import { drawPlot } from '../report/draw.ts'
import type { LinePlot } from '../report/plot.ts'

const DOCS = join(import.meta.dirname, '../../../docs')

export const RESULTS_FILE: string = join(DOCS, 'load-ramp.json')
export const SVG_FILE: string = join(DOCS, 'load-ramp.svg')

/** The reports of ramps on one machine, as the command printed them. */
export interface RampResults {
  readonly startedAt: string
  readonly cpu: string
  readonly cores: number
  /** Load average before the first ramp. */
  readonly load: number
  readonly ramps: readonly RampReport[]
}

export function readRamps(): RampResults {
  return JSON.parse(readFileSync(RESULTS_FILE, 'utf8'))
}

/** The picture, with its title for screen readers. */
export function svgOf(results: RampResults): string {
  const plot = plotOf(results)
  return drawPlot(plot).replace('>', `><title>${plot.title}</title>`)
}

function plotOf({ ramps, cores }: RampResults): LinePlot {
  return {
    ...{ kind: 'lines', name: 'load-ramp', title: `Latency by offered rate, all on ${cores} shared cores` },
    x: { label: 'offered requests per second', isLog: true },
    y: { label: 'latency from the scheduled time, ms', isLog: true },
    lines: ramps.flatMap(({ target, steps }) =>
      (['p99', 'p50'] as const).map((quantile) => ({
        label: `${target}, ${quantile}`,
        points: steps.map(({ offered, latencyMs }) => [offered, latencyMs[quantile]] as const),
      })),
    ),
  }
}
