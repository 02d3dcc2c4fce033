// slidegate validate: reports problems with the affected line.

import { readFileSync } from 'node:fs'
import type { Command } from 'commander'
import { formatCount, printable } from '../../../replay/src/text.ts'
import { type OutputFlags, print, withOutputOptions } from '../client/command.ts'
import type { LoadedConfig } from '../config/load.ts'
import { ConfigError, type ConfigProblem } from '../config/problem.ts'

const EXIT_INVALID = 2

export function addValidateCommand(program: Command): void {
  const command = program
    .command('validate')
    .description('check a configuration file, and list its problems')
    .argument('<file>', 'configuration file, YAML or JSON')
    .option('--before <file>', 'the active configuration, to find limits whose counts would restart at zero')
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
          summary(file, loaded),
          ...notes.map((note) => printable(note, 1000)),
        ])
      } catch (error) {
        if (!(error instanceof ConfigError)) throw error
        print(flags, { valid: false, problems: error.problems }, () => problemLines(error))
        process.exitCode = EXIT_INVALID
      }
    },
  )
}

function summary(file: string, { config, domains }: LoadedConfig): string {
  const count = Object.keys(config.limiters).length
  const limiters = `${formatCount(count)} ${count === 1 ? 'limiter' : 'limiters'}`
  const ofEnvoy = domains === undefined ? '' : `, ${formatCount(domains.all().length)} Envoy domains`
  return `${printable(file)} is valid: ${limiters}${ofEnvoy}`
}

function problemLines({ problems }: ConfigError): string[] {
  const count = problems.length
  return [
    ...problems.flatMap((problem) => {
      const { file, line, column, message } = problem
      return [`${printable(file)}:${line}:${column}: ${printable(message, 1000)}`, ...quoteOf(problem), '']
    }),
    `${formatCount(count)} ${count === 1 ? 'problem' : 'problems'}`,
  ]
}

/** Maximum number of columns to show from a line. */
const WIDTH = 100

/** Possible secrets: the values of these fields, and user names and passwords in URLs. */
const SECRETS = [/(?<=\b(?:token|sha256|hashKeys|secret|url)\b["']?\s*:\s*)\S.*$/, /(?<=:\/\/)[^\s/]+(?=@)/g]

/** The affected line with a caret below it. Empty if the line no longer exists. */
function quoteOf({ file, line, column }: ConfigProblem): string[] {
  const text = lineIn(file, line)
  if (text === undefined || text.trim() === '') return []
  const from = column > WIDTH ? column - WIDTH / 2 : 0
  const number = String(line)
  const shown = SECRETS.reduce((masked, secret) => masked.replace(secret, stars), text).slice(
    from,
    from + WIDTH,
  )
  // Unprintable characters become spaces, so that the caret stays aligned.
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
