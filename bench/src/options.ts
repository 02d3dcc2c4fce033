import { resolve } from 'node:path'
import { parseArgs } from 'node:util'
import { EFFORTS, type Effort, type Scenario } from './scenario.ts'

export interface Options {
  readonly effort: Effort
  readonly scenarios: readonly Scenario[]
  /** File for the raw results. */
  readonly jsonFile?: string
  /** Whether to write the report. */
  readonly isReported: boolean
  /** Results of an earlier run to use instead of measuring. */
  readonly fromFile?: string
}

/**
 * Parses the command line: `[--short | --full] [--pin] [--json FILE] [--report] [--from FILE] [SCENARIO ...]`.
 *
 * @throws an Error if the command line is invalid
 */
export function parseOptions(words: readonly string[], known: readonly Scenario[]): Options {
  const { values, positionals } = parseArgs({
    args: [...words],
    allowPositionals: true,
    options: {
      short: { type: 'boolean' },
      full: { type: 'boolean' },
      pin: { type: 'boolean' },
      json: { type: 'string' },
      report: { type: 'boolean' },
      from: { type: 'string' },
    },
  })
  if (values.short && values.full) throw new Error('--short and --full exclude each other. Pass one of them.')
  for (const name of positionals) {
    if (known.some((scenario) => scenario.name === name)) continue
    throw new Error(
      `Unknown scenario "${name}". Expected one of: ${known.map((scenario) => scenario.name).join(', ')}`,
    )
  }
  return {
    effort: { ...EFFORTS[values.full ? 'full' : 'short'], isPinned: values.pin ?? false },
    scenarios: positionals.length === 0 ? known : known.filter(({ name }) => positionals.includes(name)),
    jsonFile: fromCaller(values.json),
    isReported: values.report ?? false,
    fromFile: fromCaller(values.from),
  }
}

/** Resolves a path against the caller's folder, because npm runs scripts in the package's folder. */
function fromCaller(file: string | undefined): string | undefined {
  return file === undefined ? undefined : resolve(process.env.INIT_CWD ?? '.', file)
}
