import type { Result } from './result.ts'

const TEXTS = ['fault', 'client', 'reasons', 'complaints'] as const satisfies readonly (keyof Result)[]

const COLUMNS = [
  'fault',
  'client',
  'reasons',
  'feltPercent',
  'p99Ms',
  'longestMs',
  'lateMs',
  'backMs',
  'blockedMs',
  'grownKb',
  'overAcross',
  'complaints',
] as const satisfies readonly (keyof Result)[]

/** As comma-separated values, a line for each. */
export function linesOf(results: readonly Result[]): string {
  const lines = results.map((result) =>
    COLUMNS.map((column) => String(result[column]).replaceAll(',', ' ')).join(','),
  )
  return `${[COLUMNS.join(','), ...lines].join('\n')}\n`
}

export function resultsOf(text: string): Result[] {
  const lines = text.split('\n').slice(1).filter(Boolean)
  return lines.map((line) => {
    const values = line.split(',')
    const entries = COLUMNS.map((column, i) => {
      const value = values[i] ?? ''
      return [column, (TEXTS as readonly string[]).includes(column) ? value : Number(value)]
    })
    return Object.fromEntries(entries) as Result
  })
}
