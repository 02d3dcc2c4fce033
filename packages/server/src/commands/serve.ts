// slidegate serve and its options.

import { availableParallelism } from 'node:os'
import { type Command, InvalidArgumentError, Option } from 'commander'
import { parseDuration } from '../../../replay/src/text.ts'

interface ServeOptions {
  readonly config?: string
  readonly http?: string
  readonly grpc?: string
  readonly workers: number
  readonly drain: number
}

export function addServeCommand(program: Command): void {
  asServe(program.command('serve'))
}

/** Sets up a command to run the service: `slidegate serve`, or `slidegate-server`. */
export function asServe(command: Command): Command {
  return command
    .description("run the service: HTTP API, forward auth for gateways, Envoy's rate limit service")
    .option('-c, --config <file>', 'configuration file, YAML or JSON (default: the built-in example)')
    .addOption(new Option('--http <address>', 'HTTP address; overrides listen.http').env('SLIDEGATE_HTTP'))
    .addOption(new Option('--grpc <address>', 'gRPC address; overrides listen.grpc').env('SLIDEGATE_GRPC'))
    .addOption(
      new Option('--workers <count>', 'number of worker processes, or auto for one per core')
        .env('SLIDEGATE_WORKERS')
        .argParser(parseWorkers)
        .default(1),
    )
    .addOption(
      new Option('--drain <duration>', 'how long the service reports that it is not ready before it stops')
        .env('SLIDEGATE_DRAIN')
        .argParser(parseDrain)
        .default(0, '0'),
    )
    .action(async (options: ServeOptions) => {
      // Loaded late, so that other commands start fast.
      const { serve } = await import('../service/serve.ts')
      const { config, http, grpc, workers, drain } = options
      process.exitCode = await serve({ file: config, http, grpc, workers, drainMs: drain })
    })
}

const MAX_WORKERS = 256

function parseWorkers(text: string): number {
  if (text === 'auto') return availableParallelism()
  const count = Number(text)
  if (Number.isInteger(count) && count >= 1 && count <= MAX_WORKERS) return count
  throw new InvalidArgumentError(`It must be an integer from 1 to ${MAX_WORKERS}, or auto.`)
}

function parseDrain(text: string): number {
  const ms = parseDuration(text)
  if (ms !== undefined && ms <= 600_000) return ms
  throw new InvalidArgumentError("It must be a duration up to '10m', such as '5s'.")
}
