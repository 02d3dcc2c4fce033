// Options and output that commands share.

import { readFileSync } from 'node:fs'
import { type Command, Option } from 'commander'
import { messageOf, UsageError } from '../../../replay/src/errors.ts'
import { printable, printableJson } from '../../../replay/src/text.ts'
import { ServiceClient, type Target } from './service-client.ts'

const DEFAULT_URL = 'http://127.0.0.1:8080'

/** The output options of a command. */
export interface OutputFlags {
  readonly json?: boolean
  readonly human?: boolean
}

/** The option shared by all commands that make changes. */
export interface ReasonFlags {
  readonly reason?: string
}

/** Returns the reason as part of a request body. */
export function reasonOf({ reason }: ReasonFlags): ReasonFlags {
  return reason === undefined ? {} : { reason }
}

/** The options of all commands that call a service. */
export interface ServiceFlags extends OutputFlags {
  readonly url: string
  readonly token?: string
  readonly tokenFile?: string
  readonly ca?: string
  readonly cert?: string
  readonly certKey?: string
}

/** Adds a command that calls a service. */
export function addServiceCommand(program: Command, name: string, description: string): Command {
  return withServiceOptions(program.command(name).description(description))
}

export function withServiceOptions(command: Command): Command {
  return withOutputOptions(command)
    .addOption(new Option('--url <url>', 'URL of the service').env('SLIDEGATE_URL').default(DEFAULT_URL))
    .addOption(
      new Option('--token <token>', 'API token; other users can see it in the process list').env(
        'SLIDEGATE_TOKEN',
      ),
    )
    .addOption(new Option('--token-file <file>', 'file to read the token from').env('SLIDEGATE_TOKEN_FILE'))
    .option('--ca <file>', "CA certificates to trust instead of the system's")
    .option('--cert <file>', 'client certificate')
    .option('--cert-key <file>', 'private key for the client certificate')
}

/** Adds the option shared by all commands that make changes. */
export function withReason(command: Command): Command {
  return command.option('--reason <text>', 'reason for the change, for the audit log; up to 200 characters')
}

export function withOutputOptions(command: Command): Command {
  return command
    .addOption(new Option('--json', 'print JSON (default unless stdout is a terminal)').conflicts('human'))
    .option('--human', 'print readable text (default on a terminal)')
}

/** @throws {UsageError} */
export function targetOf({ url, token, tokenFile, ca, cert, certKey }: ServiceFlags): Target {
  const parsed = URL.canParse(url) ? new URL(url) : undefined
  if (parsed === undefined || !/^https?:$/.test(parsed.protocol)) {
    throw new UsageError(`invalid --url "${printable(url)}"; use a value such as ${DEFAULT_URL}`)
  }
  const secret = tokenFile === undefined ? token : read('--token-file', tokenFile)?.trim()
  if (secret !== undefined && !/^[\x21-\x7e]+$/.test(secret)) {
    throw new UsageError(
      'the token is empty or has invalid characters; it must be printable ASCII without spaces',
    )
  }
  return {
    url: parsed,
    token: secret,
    ca: read('--ca', ca),
    cert: read('--cert', cert),
    key: read('--cert-key', certKey),
  }
}

export function clientOf(flags: ServiceFlags): ServiceClient {
  return new ServiceClient(targetOf(flags))
}

/** Returns whether to print readable text. */
export function isForPeople({ json, human }: OutputFlags): boolean {
  return human ?? (json !== true && process.stdout.isTTY === true)
}

/** Prints a response: as lines for people, or as one JSON value. */
export function print(flags: OutputFlags, answer: unknown, linesOf: () => readonly string[]): void {
  const text = isForPeople(flags) ? linesOf().join('\n') : printableJson(answer)
  process.stdout.write(`${text}\n`)
}

/** Prints streamed text. If stdout is slow, waits for it to drain. In the meantime, the service drops events. */
export function write(text: string): Promise<void> | void {
  if (process.stdout.write(text)) return
  return new Promise((resolve) => process.stdout.once('drain', resolve))
}

function read(option: string, file: string | undefined): string | undefined {
  if (file === undefined) return undefined
  try {
    return readFileSync(file, 'utf8')
  } catch (error) {
    throw new UsageError(`${option}: ${messageOf(error)}`)
  }
}
