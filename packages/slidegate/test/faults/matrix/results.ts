import { readFile, writeFile } from 'node:fs/promises'
import { fileURLToPath } from 'node:url'
import { CLIENTS } from './clients.ts'
import { FAULTS } from './faults.ts'
import type { Result } from './result.ts'
import { tablesOf } from './tables.ts'

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

/** Formats results as CSV, one per line. */
function linesOf(results: readonly Result[]): string {
  const lines = results.map((result) =>
    COLUMNS.map((column) => String(result[column]).replaceAll(',', ' ')).join(','),
  )
  return `${[COLUMNS.join(','), ...lines].join('\n')}\n`
}

function resultsOf(text: string): Result[] {
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

const docs = (name: string) => fileURLToPath(new URL(`../../../../../docs/${name}`, import.meta.url))
const RESULTS = docs('failures-matrix.csv')
const PAGE = docs('failures.md')
const BEGIN = '<!-- matrix:begin -->'
const END = '<!-- matrix:end -->'

/** Writes results to the CSV file and the page, replacing those of the same combinations. */
export async function writeResults(results: readonly Result[]): Promise<void> {
  const known = resultsOf(await readFile(RESULTS, 'utf8').catch(() => ''))
  const isNew = ({ fault, client }: Result) =>
    results.some((result) => result.fault === fault && result.client === client)
  const all = inOrder([...known.filter((result) => !isNew(result)), ...results])
  await writeFile(RESULTS, linesOf(all))

  const page = await readFile(PAGE, 'utf8')
  const begin = page.indexOf(BEGIN) + BEGIN.length
  const end = page.indexOf(END)
  if (end < begin) throw new Error(`${PAGE} needs ${BEGIN} and ${END}`)
  await writeFile(PAGE, `${page.slice(0, begin)}\n${tablesOf(all)}${page.slice(end)}`)
}

/** Sorts results in the order of declared faults and clients. Others are dropped. */
function inOrder(results: readonly Result[]): Result[] {
  return FAULTS.flatMap(({ name: fault }) =>
    CLIENTS.flatMap(({ name: client }) =>
      results.filter((result) => result.fault === fault && result.client === client),
    ),
  )
}
