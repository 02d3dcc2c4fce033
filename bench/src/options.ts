import { resolve } from 'node:path'
import { parseArgs } from 'node:util'
import { EFFORTS, type Effort, type Scenario } from './scenario.ts'

export interface Options {
  readonly effort: Effort
  readonly scenarios: readonly Scenario[]
  /** Where the raw results are written. */
  readonly jsonFile?: string
  /** Whether the report is written. */
  readonly isReported: boolean
  /** Results of an earlier run, in place of measuring. */
  readonly fromFile?: string
}

/**
 * Reads the command line: `[--short | --full] [--pin] [--json FILE] [--report] [--from FILE] [SCENARIO ...]`.
 * Throws where it means nothing.
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
  if (values.short && values.full) throw new Error('--short and --full: which one?')
  for (const name of positionals) {
    if (known.some((scenario) => scenario.name === name)) continue
    throw new Error(
      `no scenario is named ${name}; there are ${known.map((scenario) => scenario.name).join(', ')}`,
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

/** npm runs scripts in the package's folder; names of files are meant from where npm was called. */
function fromCaller(file: string | undefined): string | undefined {
  return file === undefined ? undefined : resolve(process.env.INIT_CWD ?? '.', file)
}
