import type { Command } from 'commander'
import { addServiceCommand, clientOf, print, type ServiceFlags } from '../client/command.ts'
import { keyOf } from '../client/key-words.ts'
import { type DecisionTold, decisionLines, endWith } from '../client/telling.ts'
import { wholeNumber } from '../client/values.ts'

export interface AskFlags extends ServiceFlags {
  readonly key?: string
  readonly cost?: number
  readonly plan?: string
}

/** A command that asks about a key. */
export function addAskCommand(program: Command, name: string, description: string): Command {
  return addServiceCommand(program, name, description)
    .argument('<limiter>', 'its name')
    .argument('[key...]', 'whom to count: a word, or several like user=42 address=192.0.2.7')
    .option('--key <key>', 'the key, taken as it is')
    .option('--cost <units>', 'what the request takes (default: 1)', wholeNumber)
    .option('--plan <plan>', 'a plan of the limiter, where requests may choose it')
}

export function bodyOf(limiter: string, words: readonly string[], { key, cost, plan }: AskFlags): object {
  return { limiter, key: keyOf(words, key), ...(cost && { cost }), ...(plan !== undefined && { plan }) }
}

export function addConsumeCommand(program: Command): void {
  addAskCommand(program, 'consume', 'ask for a request, and charge it where it is allowed').action(
    (limiter: string, words: string[], flags: AskFlags) => ask('/v1/consume', limiter, words, flags),
  )
}

export function addPeekCommand(program: Command): void {
  addAskCommand(program, 'peek', 'what a request would be told now; charges nothing').action(
    (limiter: string, words: string[], flags: AskFlags) => ask('/v1/peek', limiter, words, flags),
  )
}

async function ask(path: string, limiter: string, words: string[], flags: AskFlags): Promise<void> {
  const decision = (await clientOf(flags).decide(path, bodyOf(limiter, words, flags))) as DecisionTold
  print(flags, decision, () => decisionLines(decision))
  endWith(decision)
}
