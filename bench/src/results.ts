import type { Machine } from './machine.ts'
import type { Plot } from './report/plot.ts'
import { type Effort, type Figure, isReached, type Scenario } from './scenario.ts'

/** All results of a run. The report can be written from them alone. */
export interface Results {
  readonly scenarios: readonly ScenarioResult[]
}

export interface ScenarioResult {
  readonly name: string
  readonly title: string
  readonly run: Run
  readonly seconds: number
  /** Error message, if the scenario failed. */
  readonly error?: string
  readonly figures: readonly KeptFigure[]
  readonly plots: readonly Plot[]
}

export interface KeptFigure extends Figure {
  /** Undefined if the figure has no target. */
  readonly reached?: boolean
}

/** The run in which a scenario was measured. */
export interface Run {
  readonly machine: Machine
  readonly startedAt: string
  readonly mode: Effort['mode']
  readonly isPinned: boolean
  /** Load average over the minute before the start. Other programs were running if it is above 0. */
  readonly load: number
}

/** Runs a scenario. A failure counts as a result, so that the others still run. */
export async function resultOf(scenario: Scenario, effort: Effort, run: Run): Promise<ScenarioResult> {
  const { name, title } = scenario
  const start = performance.now()
  const header = () => ({ name, title, run, seconds: (performance.now() - start) / 1000 })
  try {
    const measured = await scenario.run(effort)
    const { figures, plots } = 'plots' in measured ? measured : { figures: measured, plots: [] }
    return {
      ...header(),
      figures: figures.map((figure) => ({ ...figure, reached: isReached(figure) })),
      plots,
    }
  } catch (error) {
    // Stores only the message, because a stack would contain paths of this machine.
    console.error(error)
    const reason = error instanceof Error ? error.message : String(error)
    return { ...header(), error: reason, figures: [], plots: [] }
  }
}

/** Merges results. Scenarios of the new run replace stored ones. */
export function merge(kept: Results | undefined, measured: Results, order: readonly string[]): Results {
  const isNew = new Set(measured.scenarios.map(({ name }) => name))
  const old = kept?.scenarios.filter(({ name }) => !isNew.has(name)) ?? []
  const scenarios = [...old, ...measured.scenarios]
  return { scenarios: scenarios.toSorted((a, b) => order.indexOf(a.name) - order.indexOf(b.name)) }
}

export function inJson(results: Results): string {
  return `${JSON.stringify(results, rounded, 2)}\n`
}

/** Rounds to six digits, because further digits are noise. */
function rounded(_name: string, value: unknown): unknown {
  return typeof value === 'number' && !Number.isInteger(value) ? Number(value.toPrecision(6)) : value
}

/** Returns how many targets were reached. */
export function summaryOf({ scenarios }: Results): string {
  const verdicts = scenarios
    .flatMap(({ figures }) => figures.map(({ reached }) => reached))
    .filter((verdict) => verdict !== undefined)
  return `${verdicts.filter((verdict) => verdict).length} of ${verdicts.length} targets reached`
}
