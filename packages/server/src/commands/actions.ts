// slidegate reset, block, unblock, shadow, drain, undo.

import { type Command, Option } from 'commander'
import { printable } from '../../../replay/src/text.ts'
import { duration, type KeyBody, keyOf, keyText, onOff } from '../client/arguments.ts'
import {
  addServiceCommand,
  clientOf,
  print,
  type ReasonFlags,
  reasonOf,
  type ServiceFlags,
  withReason,
} from '../client/command.ts'
import { blockedText, nameOf } from '../client/format.ts'

interface KeyFlags extends ServiceFlags, ReasonFlags {
  readonly key?: string
  readonly ttl?: string
}

/** Adds a command that changes a key. */
export function addKeyCommand(program: Command, name: string, description: string): Command {
  return withReason(addServiceCommand(program, name, description))
    .argument('<limiter>', 'limiter name')
    .argument('[key...]', 'key; with dimensions, one or more pairs like user=42')
    .option('--key <key>', 'key that is used as is, even if it contains =')
}

export function addResetCommand(program: Command): void {
  addKeyCommand(program, 'reset', "reset a key's usage and bans").action(
    (limiter: string, words: string[], flags: KeyFlags) =>
      act('reset', { limiter, key: keyOf(words, flags.key) }, flags, 'usage and bans reset'),
  )
}

export function addBlockCommand(program: Command): void {
  addKeyCommand(program, 'block', 'deny all requests for a key')
    .option(
      '--ttl <duration>',
      'length of the block, such as 30s, 1h or 7d (default: until unblocked)',
      duration,
    )
    .action((limiter: string, words: string[], flags: KeyFlags) => {
      const { ttl } = flags
      const body = { limiter, key: keyOf(words, flags.key), ...(ttl !== undefined && { ttl }) }
      return act('block', body, flags, ttl === undefined ? blockedText(null) : `blocked for ${ttl}`)
    })
}

export function addUnblockCommand(program: Command): void {
  addKeyCommand(program, 'unblock', "remove a key's block and bans").action(
    (limiter: string, words: string[], flags: KeyFlags) =>
      act('unblock', { limiter, key: keyOf(words, flags.key) }, flags, 'unblocked'),
  )
}

async function act(
  what: string,
  body: { readonly limiter: string; readonly key: KeyBody },
  flags: KeyFlags,
  result: string,
): Promise<void> {
  const answer = await clientOf(flags).ask('POST', `/v1/admin/${what}`, 'done', {
    ...body,
    ...reasonOf(flags),
  })
  print(flags, answer, () => [`${keyText(body.key)} at ${printable(body.limiter)}: ${result}`])
}

interface ShadowFlags extends ServiceFlags, ReasonFlags {
  readonly limit?: string
}

const SHADOW = { on: true, off: false, file: null } as const

export function addShadowCommand(program: Command): void {
  withReason(addServiceCommand(program, 'shadow', 'turn shadow mode on or off for limits, on all instances'))
    .argument('<limiter>', 'limiter name')
    .argument('<on|off|file>', "on: count but don't deny; off: enforce; file: as configured")
    .addOption(new Option('--limit <name>', 'change this limit only'))
    .action(async (limiter: string, word: string, { limit, ...flags }: ShadowFlags, command: Command) => {
      if (!Object.hasOwn(SHADOW, word))
        command.error(`invalid mode "${printable(word)}"; it must be on, off or file`)
      const shadow = SHADOW[word as keyof typeof SHADOW]
      const body = { limiter, shadow, ...(limit !== undefined && { limit }), ...reasonOf(flags) }
      const answer = await clientOf(flags).ask('POST', '/v1/admin/shadow', 'limits', body)
      const { limits } = answer as { limits: readonly { name: string; shadow: boolean }[] }
      const names = limits.map(nameOf).join(', ')
      print(flags, answer, () => [`${printable(limiter)}: ${names}`])
    })
}

export function addDrainCommand(program: Command): void {
  withReason(addServiceCommand(program, 'drain', 'take an instance out of load balancing, or put it back'))
    .argument(
      '<on|off>',
      'on: report the instance as not ready, but keep answering requests; off: report it as ready',
      onOff,
    )
    .action(async (drain: boolean, flags: ServiceFlags & ReasonFlags) => {
      const body = { drain, ...reasonOf(flags) }
      const answer = await clientOf(flags).ask('POST', '/v1/admin/drain', 'done', body)
      print(flags, answer, () => [
        drain ? 'draining: this instance reports that it is not ready' : 'ready for requests',
      ])
    })
}

export function addUndoCommand(program: Command): void {
  withReason(addServiceCommand(program, 'undo', 'undo a change, unless the same setting has changed again'))
    .argument('<id>', 'id of the change, as printed by slidegate audit')
    .action(async (id: string, flags: ServiceFlags & ReasonFlags) => {
      const body = { id, ...reasonOf(flags) }
      const answer = await clientOf(flags).ask('POST', '/v1/admin/undo', 'summary', body)
      print(flags, answer, () => [`undone: ${printable((answer as { summary: string }).summary, 300)}`])
    })
}
