import type { Command } from 'commander'
import { type OutputFlags, print, withOutputOptions } from '../client/command.ts'
import type { LoadedConfig } from '../config/load.ts'
import { ConfigError } from '../config/problem.ts'
import { quoteOf } from '../config/quote.ts'
import { formatCount, printable } from '../text.ts'

/** What a configuration that cannot be put in force ends with. */
const EXIT_INVALID = 2

export function addValidateCommand(program: Command): void {
  const command = program
    .command('validate')
    .description('say whether a configuration can be put in force, and if not, where it is wrong')
    .argument('<file>', 'the configuration, YAML or JSON')
    .option('--before <file>', 'the configuration in force: say which limits would begin with an empty log')
  withOutputOptions(command).action(
    async (file: string, flags: OutputFlags & { readonly before?: string }) => {
      const { loadConfig } = await import('../config/load.ts')
      const { afreshNotes } = await import('../service/afresh.ts')
      try {
        const loaded = loadConfig(file)
        const limiters = Object.keys(loaded.config.limiters)
        const { before } = flags
        const notes = afreshNotes(loaded.config, before === undefined ? undefined : loadConfig(before).config)
        print(flags, { valid: true, limiters, problems: [], notes }, () => [
          praise(file, loaded),
          ...notes.map((note) => printable(note, 1000)),
        ])
      } catch (error) {
        if (!(error instanceof ConfigError)) throw error
        print(flags, { valid: false, problems: error.problems }, () => complaints(error))
        process.exitCode = EXIT_INVALID
      }
    },
  )
}

function praise(file: string, { config, domains }: LoadedConfig): string {
  const count = Object.keys(config.limiters).length
  const limiters = `${formatCount(count)} ${count === 1 ? 'limiter' : 'limiters'}`
  const ofEnvoy = domains === undefined ? '' : `, ${formatCount(domains.all().length)} domains of Envoy`
  return `${printable(file)} is valid: ${limiters}${ofEnvoy}`
}

function complaints({ problems }: ConfigError): string[] {
  const count = problems.length
  return [
    ...problems.flatMap((problem) => {
      const { file, line, column, message } = problem
      return [`${printable(file)}:${line}:${column}: ${printable(message, 1000)}`, ...quoteOf(problem), '']
    }),
    `${formatCount(count)} ${count === 1 ? 'problem' : 'problems'}`,
  ]
}
