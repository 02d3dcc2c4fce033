// START HERE: the commands of slidegate and slidegate-server, and their exit codes.

import { Command, CommanderError } from 'commander'
import { messageOf, UsageError } from '../../replay/src/errors.ts'
import { printable } from '../../replay/src/text.ts'
import { ClientError } from './client/service-client.ts'
import {
  addBlockCommand,
  addDrainCommand,
  addResetCommand,
  addShadowCommand,
  addUnblockCommand,
  addUndoCommand,
} from './commands/actions.ts'
import { addConsumeCommand, addExplainCommand, addPeekCommand } from './commands/ask.ts'
import { addBenchCommand } from './commands/bench.ts'
import { addDoctorCommand } from './commands/doctor.ts'
import { addHistoryCommand } from './commands/history.ts'
import { addInitCommand } from './commands/init.ts'
import { addBansCommand, addFindCommand } from './commands/keys.ts'
import { addOverrideCommand } from './commands/override.ts'
import { addDemoCommand, addReplayCommand } from './commands/replay.ts'
import { addServeCommand, asServe } from './commands/serve.ts'
import { addTailCommand } from './commands/tail.ts'
import { addValidateCommand } from './commands/validate.ts'
import {
  addAuditCommand,
  addCaptureCommand,
  addLimitersCommand,
  addTopCommand,
  addUsageCommand,
} from './commands/views.ts'
import { ConfigError } from './config/problem.ts'
import { VERSION } from './service/instance.ts'

const EXIT_FAILURE = 1
const EXIT_USAGE = 2

/** In the order of the help text. */
const COMMANDS = [
  addInitCommand,
  addServeCommand,
  addValidateCommand,
  addDoctorCommand,
  addConsumeCommand,
  addPeekCommand,
  addExplainCommand,
  addLimitersCommand,
  addUsageCommand,
  addTopCommand,
  addHistoryCommand,
  addFindCommand,
  addBansCommand,
  addTailCommand,
  addResetCommand,
  addBlockCommand,
  addUnblockCommand,
  addOverrideCommand,
  addShadowCommand,
  addDrainCommand,
  addAuditCommand,
  addUndoCommand,
  addCaptureCommand,
  addBenchCommand,
  addReplayCommand,
  addDemoCommand,
]

/** The commands that this package installs. `npx slidegate-server` runs the command with the package's name. */
export type Bin = 'slidegate' | 'slidegate-server'

function newProgram(bin: Bin): Command {
  const program = new Command(bin)
    .version(VERSION)
    // Errors are thrown, and reported once, below.
    .exitOverride()
    .configureOutput({ outputError: () => {} })
  if (bin === 'slidegate-server') {
    return asServe(program).addHelpText('after', '\nOther commands: npx -p slidegate-server slidegate help')
  }
  program.description(
    'An exact sliding-window rate limiter. Run it as a service, query and manage it, or replay a log.',
  )
  for (const add of COMMANDS) add(program)
  return program
}

/** Prints an error, one line per problem, and returns the exit code. */
function report(error: unknown): number {
  if (error instanceof CommanderError) {
    if (error.exitCode === 0) return 0
    // If no command was given, the help has been printed instead.
    if (error.code !== 'commander.help') complain(error.message.replace(/^error: /, ''))
    return EXIT_USAGE
  }
  if (error instanceof ConfigError) {
    for (const line of error.message.split('\n')) complain(line)
    return EXIT_USAGE
  }
  complain(messageOf(error))
  if (error instanceof ClientError) return error.exitCode
  // Compares the name, because loading the library for its class would take longer than most commands.
  const isMistake = error instanceof UsageError || (error as Error).name === 'SlidegateError'
  return isMistake ? EXIT_USAGE : EXIT_FAILURE
}

function complain(message: string): void {
  process.stderr.write(`slidegate: ${printable(message.replaceAll(/\s*\n\s*/g, ' '), 1000)}\n`)
}

/** Runs a command, and sets the exit code of the process. */
export async function run(words: readonly string[], bin: Bin = 'slidegate'): Promise<void> {
  try {
    await newProgram(bin).parseAsync(words, { from: 'user' })
  } catch (error) {
    process.exitCode = report(error)
  }
}

export async function main(bin: Bin = 'slidegate'): Promise<void> {
  // The reader may close the pipe early, as `head` does.
  process.stdout.on('error', (error: NodeJS.ErrnoException) => {
    if (error.code !== 'EPIPE') complain(messageOf(error))
    process.exit(error.code === 'EPIPE' ? undefined : EXIT_FAILURE)
  })
  await run(process.argv.slice(2), bin)
}
