import type { Machine } from './machine.ts'
import { type Effort, type Figure, isReached, type Scenario } from './scenario.ts'

/** What came of a scenario. */
export interface Result {
  readonly scenario: Scenario
  readonly seconds: number
  readonly figures: readonly Figure[]
  /** Why there are no figures. */
  readonly error?: string
}

/** What the figures were measured on and with. */
export function headOf(
  { mode, isPinned }: Effort,
  { cpu, cores, memoryGiB, system, load, versions }: Machine,
): string {
  const named = Object.entries(versions).map(([name, version]) => `${name} ${version}`)
  return [
    `bench --${mode}${isPinned ? ' --pin' : ''}: ${named.join(', ')}`,
    `${cores} x ${cpu}, ${memoryGiB} GiB, ${system}; load ${load.toFixed(1)} at the start`,
  ].join('\n')
}

/** A scenario's figures for people. */
export function tableOf({ scenario, seconds, figures, error }: Result): string {
  const rows = figures.map((figure) => [
    figure.name,
    withUnit(figure, figure.value),
    spreadOf(figure),
    targetOf(figure),
    { true: 'reached', false: 'NOT reached', undefined: '' }[`${isReached(figure)}`]!,
    figure.note ?? '',
  ])
  const table = [['', 'measured', 'rounds', 'target', '', ''], ...rows]
  const widths = table[0]!.map((_, column) => Math.max(...table.map((row) => row[column]!.length)))
  const lines = table.map((row) =>
    row
      .map((cell, column) =>
        column === 1 || column === 3 ? cell.padStart(widths[column]!) : cell.padEnd(widths[column]!),
      )
      .join('  ')
      .trimEnd(),
  )
  const failure = error === undefined ? [] : [`failed: ${error}`]
  return [`${scenario.name} (${seconds.toFixed(0)} s): ${scenario.title}`, ...lines, ...failure].join('\n  ')
}

/** One line that says how many of the targets were reached. */
export function summaryOf(results: readonly Result[]): string {
  const verdicts = results
    .flatMap(({ figures }) => figures.map(isReached))
    .filter((verdict) => verdict !== undefined)
  return `${verdicts.filter((verdict) => verdict).length} of ${verdicts.length} targets reached`
}

/** All that was measured, for programs. */
export function jsonOf(
  startedAt: Date,
  effort: Effort,
  machine: Machine,
  results: readonly Result[],
): string {
  const scenarios = results.map(({ scenario: { name, title }, seconds, figures, error }) => ({
    name,
    title,
    seconds,
    error,
    figures: figures.map((figure) => ({ ...figure, reached: isReached(figure) })),
  }))
  return `${JSON.stringify({ startedAt, mode: effort.mode, isPinned: effort.isPinned, machine, scenarios }, null, 2)}\n`
}

function targetOf({ target, unit }: Figure): string {
  if (target === undefined) return ''
  return 'atLeast' in target ? `>= ${target.atLeast} ${unit}` : `<= ${target.atMost} ${unit}`
}

function spreadOf({ spread, unit }: Figure): string {
  if (spread === undefined) return ''
  return `${numberOf(Math.min(...spread), unit)} .. ${numberOf(Math.max(...spread), unit)}`
}

function withUnit({ unit }: Figure, value: number): string {
  return `${numberOf(value, unit)} ${unit}`
}

function numberOf(value: number, unit: Figure['unit']): string {
  return value.toFixed({ x: 2, bytes: 1, µs: 0 }[unit])
}
