// slidegate validate: problems with the line that is wrong.

import { readFileSync } from 'node:fs'
import type { Command } from 'commander'
import { formatCount, printable } from '#replay/text.js'
import { type OutputFlags, print, withOutputOptions } from '../client/command.ts'
import type { LoadedConfig } from '../config/load.ts'
import { ConfigError, type ConfigProblem } from '../config/problem.ts'

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
      const { emptyLogNotes } = await import('../service/empty-logs.ts')
      try {
        const loaded = loadConfig(file)
        const limiters = Object.keys(loaded.config.limiters)
        const { before } = flags
        const notes = emptyLogNotes(
          loaded.config,
          before === undefined ? undefined : loadConfig(before).config,
        )
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

/** Columns of a line that are shown. */
const WIDTH = 100

/** What may be a secret: what these names stand before, and users and passwords in URLs. */
const SECRETS = [/(?<=\b(?:token|sha256|hashKeys|secret|url)\b["']?\s*:\s*)\S.*$/, /(?<=:\/\/)[^\s/]+(?=@)/g]

/** The line that is wrong, with a caret under the place; nothing where it is gone. */
function quoteOf({ file, line, column }: ConfigProblem): string[] {
  const text = lineIn(file, line)
  if (text === undefined || text.trim() === '') return []
  const from = column > WIDTH ? column - WIDTH / 2 : 0
  const number = String(line)
  const shown = SECRETS.reduce((masked, secret) => masked.replace(secret, stars), text).slice(
    from,
    from + WIDTH,
  )
  // One character each, so that the caret stands where it should.
  const plain = Array.from(shown, (character) => (printable(character) === character ? character : ' ')).join(
    '',
  )
  return [`  ${number} | ${plain}`, `  ${' '.repeat(number.length)} | ${' '.repeat(column - 1 - from)}^`]
}

function stars(text: string): string {
  return '*'.repeat(text.length)
}

function lineIn(file: string, line: number): string | undefined {
  try {
    return readFileSync(file, 'utf8')
      .replace(/^\uFEFF/, '')
      .split(/\r?\n/)[line - 1]
  } catch {
    return undefined
  }
}
