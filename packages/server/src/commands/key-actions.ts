import type { Command } from 'commander'
import { addServiceCommand, clientOf, print, type ServiceFlags } from '../client/command.ts'
import { type KeyBody, keyOf, keyText } from '../client/key-words.ts'
import { blockedText } from '../client/telling.ts'
import { duration } from '../client/values.ts'
import { printable } from '../text.ts'

interface KeyFlags extends ServiceFlags {
  readonly key?: string
  readonly for?: string
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
    .option('--for <duration>', "for how long: '30s', '1h', '7d' (default: until it is unblocked)", duration)
    .action((limiter: string, words: string[], flags: KeyFlags) => {
      const { for: ttl } = flags
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
