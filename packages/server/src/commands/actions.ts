// slidegate reset, block, unblock, shadow, drain.

import { type Command, Option } from 'commander'
import { printable } from '#replay/text.js'
import { duration, type KeyBody, keyOf, keyText, onOff } from '../client/arguments.ts'
import { addServiceCommand, clientOf, print, type ServiceFlags } from '../client/command.ts'
import { blockedText, nameOf } from '../client/format.ts'

interface KeyFlags extends ServiceFlags {
  readonly key?: string
  readonly ttl?: string
}

/** A command that does something to a key. */
export function addKeyCommand(program: Command, name: string, description: string): Command {
  return addServiceCommand(program, name, description)
    .argument('<limiter>', 'its name')
    .argument('[key...]', 'a word, or some of several like user=42')
    .option('--key <key>', 'the key, taken as it is')
}

export function addResetCommand(program: Command): void {
  addKeyCommand(program, 'reset', 'forget what a key has used, and its bans').action(
    (limiter: string, words: string[], flags: KeyFlags) =>
      act('reset', { limiter, key: keyOf(words, flags.key) }, flags, 'nothing is used'),
  )
}

export function addBlockCommand(program: Command): void {
  addKeyCommand(program, 'block', 'deny every request of a key')
    .option('--ttl <duration>', "for how long: '30s', '1h', '7d' (default: until it is unblocked)", duration)
    .action((limiter: string, words: string[], flags: KeyFlags) => {
      const { ttl } = flags
      const body = { limiter, key: keyOf(words, flags.key), ...(ttl !== undefined && { ttl }) }
      return act('block', body, flags, ttl === undefined ? blockedText(null) : `blocked for ${ttl}`)
    })
}

export function addUnblockCommand(program: Command): void {
  addKeyCommand(program, 'unblock', 'lift the block of a key, and its bans').action(
    (limiter: string, words: string[], flags: KeyFlags) =>
      act('unblock', { limiter, key: keyOf(words, flags.key) }, flags, 'not blocked'),
  )
}

async function act(
  what: string,
  body: { readonly limiter: string; readonly key: KeyBody },
  flags: KeyFlags,
  told: string,
): Promise<void> {
  const answer = await clientOf(flags).ask('POST', `/v1/admin/${what}`, 'done', body)
  print(flags, answer, () => [`${keyText(body.key)} at ${printable(body.limiter)}: ${told}`])
}

interface ShadowFlags extends ServiceFlags {
  readonly limit?: string
}

const SHADOW = { on: true, off: false, file: null } as const

export function addShadowCommand(program: Command): void {
  addServiceCommand(program, 'shadow', 'count and report limits, or enforce them, on all instances')
    .argument('<limiter>', 'its name')
    .argument(
      '<on|off|file>',
      'on: they deny nobody; off: they are enforced; file: as the configuration says',
    )
    .addOption(new Option('--limit <name>', 'of one limit only'))
    .action(async (limiter: string, word: string, { limit, ...flags }: ShadowFlags, command: Command) => {
      if (!Object.hasOwn(SHADOW, word))
        command.error(`shadow is "${printable(word)}"; it must be on, off or file`)
      const shadow = SHADOW[word as keyof typeof SHADOW]
      const body = { limiter, shadow, ...(limit !== undefined && { limit }) }
      const answer = await clientOf(flags).ask('POST', '/v1/admin/shadow', 'limits', body)
      const { limits } = answer as { limits: readonly { name: string; shadow: boolean }[] }
      const names = limits.map(nameOf).join(', ')
      print(flags, answer, () => [`${printable(limiter)}: ${names}`])
    })
}

export function addDrainCommand(program: Command): void {
  addServiceCommand(program, 'drain', 'have no more requests sent to this instance, or again')
    .argument('<on|off>', 'on: it is not ready any more, and answers whoever still asks', onOff)
    .action(async (drain: boolean, flags: ServiceFlags) => {
      const answer = await clientOf(flags).ask('POST', '/v1/admin/drain', 'done', { drain })
      print(flags, answer, () => [drain ? 'draining: it says that it is not ready' : 'ready for requests'])
    })
}
