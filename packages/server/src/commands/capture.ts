import type { Command } from 'commander'
import { addServiceCommand, clientOf, type ServiceFlags, write } from '../client/command.ts'
import { numberUpTo } from '../client/values.ts'
import { printable } from '../text.ts'

interface CaptureFlags extends ServiceFlags {
  readonly count: number
}

const MAX_COUNT = 100_000

export function addCaptureCommand(program: Command): void {
  addServiceCommand(program, 'capture', 'the requests that the service has captured, as lines for replay')
    .argument('[limiter]', 'only of this one')
    .option('--count <count>', 'the newest so many', numberUpTo(MAX_COUNT), 10_000)
    .action(async (limiter: string | undefined, { count, ...flags }: CaptureFlags) => {
      const query = new URLSearchParams({ count: `${count}`, ...(limiter !== undefined && { limiter }) })
      const parts = clientOf(flags).text(`/v1/admin/capture?${query}`, 'application/x-ndjson')
      for await (const part of parts) await write(part.split('\n').map(shown).join('\n'))
    })
}

/** JSON that is the same data, safe on a terminal. */
function shown(line: string): string {
  return printable(line, Number.POSITIVE_INFINITY)
}
