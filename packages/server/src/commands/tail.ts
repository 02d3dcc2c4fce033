// slidegate tail.

import type { Command } from 'commander'
import { formatCount, printable, printableJson } from '../../../replay/src/text.ts'
import type { TailDecision } from '../admin/api-types.ts'
import { keyText, numberUpTo } from '../client/arguments.ts'
import { addServiceCommand, clientOf, isForPeople, type ServiceFlags, write } from '../client/command.ts'
import { after, blockedText, byWhat } from '../client/format.ts'
import { ClientError, EXIT } from '../client/service-client.ts'

interface TailFlags extends ServiceFlags {
  readonly key?: string
  readonly denied?: boolean
  readonly count?: number
}

export function addTailCommand(program: Command): void {
  addServiceCommand(program, 'tail', 'show decisions as they happen, until Ctrl-C')
    .argument('[limiter]', 'show only this limiter')
    .option('--key <key>', 'show only this key, in any dimension')
    .option('--denied', 'show only denials')
    .option('--count <count>', 'stop after this many decisions', numberUpTo(1_000_000_000))
    .action(tail)
}

async function tail(limiter: string | undefined, flags: TailFlags): Promise<void> {
  const { key, denied, count = Number.POSITIVE_INFINITY } = flags
  const query = new URLSearchParams({
    ...(limiter !== undefined && { limiter }),
    ...(key !== undefined && { key }),
    ...(denied && { denied: 'true' }),
  })
  const stop = new AbortController()
  const end = () => stop.abort()
  process.once('SIGINT', end).once('SIGTERM', end)
  const isHuman = isForPeople(flags)
  let seen = 0
  for await (const { event, data } of clientOf(flags).events(`/v1/admin/tail?${query}`, stop.signal)) {
    const received: unknown = JSON.parse(data)
    if (event === 'lost') {
      const { lost } = received as { lost: number }
      process.stderr.write(
        `slidegate: ${formatCount(lost)} decisions were skipped, because they arrived faster than they could be printed\n`,
      )
    } else if (event === 'decision') {
      await write(`${isHuman ? lineOf(received as TailDecision) : printableJson(received, 0)}\n`)
      if (++seen >= count) return end()
    }
  }
  if (!stop.signal.aborted) throw new ClientError(EXIT.unreachable, 'the service closed the connection')
}

function lineOf(line: TailDecision): string {
  const { atMs, limiter, key, allowed, remaining, shadowDeniedBy = [] } = line
  const left = remaining === null ? '' : `${formatCount(remaining)} left`
  const shadow =
    shadowDeniedBy.length === 0 ? '' : `, shadow: ${shadowDeniedBy.map((name) => printable(name)).join(', ')}`
  return [
    new Date(atMs).toISOString().slice(11, 23),
    allowed ? 'allowed' : 'denied ',
    printable(limiter),
    keyText(key),
    `${allowed ? left : whyOf(line)}${shadow}`,
  ].join('  ')
}

function whyOf({ deniedBy, retryAfterMs, blockedMs, source }: TailDecision): string {
  const by = deniedBy.length === 0 ? printable(source) : byWhat(deniedBy).trim()
  const blocked = blockedMs === undefined ? '' : `, ${blockedText(blockedMs)}`
  const retry = retryAfterMs === null ? "retrying won't help" : `retry ${after(retryAfterMs)}`
  return `${by}${blocked}, ${retry}`
}
