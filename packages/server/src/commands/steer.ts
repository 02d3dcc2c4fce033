import { type Command, Option } from 'commander'
import { addServiceCommand, clientOf, print, type ServiceFlags } from '../client/command.ts'
import { nameOf } from '../client/telling.ts'
import { onOff } from '../client/values.ts'
import { printable } from '../text.ts'

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
