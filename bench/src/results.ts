import type { Machine } from './machine.ts'
import type { Plot } from './report/plot.ts'
import { type Effort, type Figure, isReached, type Scenario } from './scenario.ts'

/** All that was measured, as it is kept: the report can be made of it alone. */
export interface Results {
  readonly scenarios: readonly ScenarioResult[]
}

/** What came of a scenario. */
export interface ScenarioResult {
  readonly name: string
  readonly title: string
  readonly run: Run
  readonly seconds: number
  /** Why there are no figures. */
  readonly error?: string
  readonly figures: readonly KeptFigure[]
  readonly plots: readonly Plot[]
}

export interface KeptFigure extends Figure {
  /** Undefined where there is no target. */
  readonly reached?: boolean
}

/** In which run of the bench a scenario was measured, and on what. */
export interface Run {
  readonly machine: Machine
  readonly startedAt: string
  readonly mode: Effort['mode']
  readonly isPinned: boolean
  /** Processes that wanted a core at the start, over the last minute: above 0, others were at work. */
  readonly load: number
}

/** Measures. What fails is a result too: then the others are still measured. */
export async function resultOf(scenario: Scenario, effort: Effort, run: Run): Promise<ScenarioResult> {
  const { name, title } = scenario
  const start = performance.now()
  const told = () => ({ name, title, run, seconds: (performance.now() - start) / 1000 })
  try {
    const measured = await scenario.run(effort)
    const { figures, plots } = 'plots' in measured ? measured : { figures: measured, plots: [] }
    return { ...told(), figures: figures.map((figure) => ({ ...figure, reached: isReached(figure) })), plots }
  } catch (error) {
    // What is kept tells nobody where files lie on this machine.
    console.error(error)
    const reason = error instanceof Error ? error.message : String(error)
    return { ...told(), error: reason, figures: [], plots: [] }
  }
}

/** Kept results with those of a new run in place of the same scenarios' old ones: each is a ratio within its own run. */
export function merge(kept: Results | undefined, measured: Results, order: readonly string[]): Results {
  const isNew = new Set(measured.scenarios.map(({ name }) => name))
  const old = kept?.scenarios.filter(({ name }) => !isNew.has(name)) ?? []
  const scenarios = [...old, ...measured.scenarios]
  return { scenarios: scenarios.toSorted((a, b) => order.indexOf(a.name) - order.indexOf(b.name)) }
}

export function inJson(results: Results): string {
  return `${JSON.stringify(results, rounded, 2)}\n`
}

/** More digits say nothing. */
function rounded(_name: string, value: unknown): unknown {
  return typeof value === 'number' && !Number.isInteger(value) ? Number(value.toPrecision(6)) : value
}

/** How many of the targets were reached. */
export function summaryOf({ scenarios }: Results): string {
  const verdicts = scenarios
    .flatMap(({ figures }) => figures.map(({ reached }) => reached))
    .filter((verdict) => verdict !== undefined)
  return `${verdicts.filter((verdict) => verdict).length} of ${verdicts.length} targets reached`
}
