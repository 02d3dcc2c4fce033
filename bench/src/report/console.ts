import type { Run, ScenarioResult } from '../results.ts'
import { measuredText, spreadText, targetText } from './text.ts'

/** Returns a run's mode, versions and machine. */
export function headOf({ machine, mode, isPinned, load }: Run): string {
  const { cpu, cores, memoryGiB, system, versions } = machine
  const named = ['node', 'redis', 'slidegate', 'ioredis'].map((name) => `${name} ${versions[name]}`)
  return [
    `bench --${mode}${isPinned ? ' --pin' : ''}: ${named.join(', ')}`,
    `${cores} x ${cpu}, ${memoryGiB} GiB, ${system}; load ${load.toFixed(1)} at the start`,
  ].join('\n')
}

/** Formats a scenario's figures as a table. */
export function tableOf({ name, title, seconds, figures, error }: ScenarioResult): string {
  const rows = figures.map((figure) => [
    figure.name,
    measuredText(figure),
    spreadText(figure),
    targetText(figure),
    { true: 'reached', false: 'NOT reached', undefined: '' }[`${figure.reached}`]!,
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
  const failure = error === undefined ? [] : [`Failed: ${error}`]
  return [`${name} (${seconds.toFixed(0)} s): ${title}`, ...lines, ...failure].join('\n  ')
}
