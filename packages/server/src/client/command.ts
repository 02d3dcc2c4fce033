// The options that commands share, and how they print.

import { readFileSync } from 'node:fs'
import { type Command, Option } from 'commander'
import { messageOf, UsageError } from '#replay/errors.js'
import { printable, printableJson } from '#replay/text.js'
import { ServiceClient, type Target } from './service-client.ts'

const DEFAULT_URL = 'http://127.0.0.1:8080'

/** How a command tells what it has found. */
export interface OutputFlags {
  readonly json?: boolean
  readonly human?: boolean
}

/** The options of all commands that ask a service. */
export interface ServiceFlags extends OutputFlags {
  readonly url: string
  readonly token?: string
  readonly tokenFile?: string
  readonly ca?: string
  readonly cert?: string
  readonly certKey?: string
}

/** A command that asks a service. */
export function addServiceCommand(program: Command, name: string, description: string): Command {
  return withServiceOptions(program.command(name).description(description))
}

export function withServiceOptions(command: Command): Command {
  return withOutputOptions(command)
    .addOption(new Option('--url <url>', 'the service').env('SLIDEGATE_URL').default(DEFAULT_URL))
    .addOption(
      new Option('--token <token>', 'who asks; others can see it in the list of processes').env(
        'SLIDEGATE_TOKEN',
      ),
    )
    .addOption(new Option('--token-file <file>', 'the same from a file').env('SLIDEGATE_TOKEN_FILE'))
    .option('--ca <file>', 'certificates that are trusted, in place of those of the system')
    .option('--cert <file>', 'the certificate of this client')
    .option('--cert-key <file>', 'its private key')
}

export function withOutputOptions(command: Command): Command {
  return command
    .addOption(
      new Option('--json', 'print JSON; the default where the output is no terminal').conflicts('human'),
    )
    .option('--human', 'print for people; the default on a terminal')
}

/** @throws {UsageError} */
export function targetOf({ url, token, tokenFile, ca, cert, certKey }: ServiceFlags): Target {
  const parsed = URL.canParse(url) ? new URL(url) : undefined
  if (parsed === undefined || !/^https?:$/.test(parsed.protocol)) {
    throw new UsageError(`--url is "${printable(url)}"; write it like ${DEFAULT_URL}`)
  }
  const secret = tokenFile === undefined ? token : read('--token-file', tokenFile)?.trim()
  if (secret !== undefined && !/^[\x21-\x7e]+$/.test(secret)) {
    throw new UsageError(
      'the token is empty, or has characters that no token has; it must be printable ASCII without spaces',
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

/** Whether people read the output. */
export function isForPeople({ json, human }: OutputFlags): boolean {
  return human ?? (json !== true && process.stdout.isTTY === true)
}

/** Prints an answer: for people as told, else as one JSON value. */
export function print(flags: OutputFlags, answer: unknown, told: () => readonly string[]): void {
  const text = isForPeople(flags) ? told().join('\n') : printableJson(answer)
  process.stdout.write(`${text}\n`)
}

/** Prints what goes on. Whoever reads it slowly is waited for: the service then leaves out what there is no room for. */
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
