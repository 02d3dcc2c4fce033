import type { Command } from 'commander'
import { clientOf, print, type ServiceFlags, withServiceOptions } from '../client/command.ts'
import { keyOf, keyText } from '../client/key-words.ts'
import { lasting, limitText } from '../client/telling.ts'
import { collect, duration } from '../client/values.ts'
import { UsageError } from '../errors.ts'
import { alignColumns, printable } from '../text.ts'
import { addKeyCommand } from './key-actions.ts'

interface OverrideFlags extends ServiceFlags {
  readonly key?: string
  readonly limit?: readonly string[]
  readonly limits?: string
  readonly for?: string
}

interface OverrideTold {
  readonly key: string
  readonly dimension?: string
  readonly limits: readonly Readonly<Record<string, unknown>>[]
  readonly expiresInMs: number
}

export function addOverrideCommand(program: Command): void {
  const override = program.command('override').description('limits of single keys in place of their own')
  addKeyCommand(override, 'set', 'give a key other limits')
    .option('--limit <limit>', 'a sliding window like 1000/1m, or hourly=5000/1h; repeatable', collect)
    .option('--limits <json>', 'limits of any kind, as a configuration has them: a JSON array')
    .option('--for <duration>', "for how long: '1h', '7d' (default: until it is deleted)", duration)
    .action(setOverride)
  addKeyCommand(override, 'delete', 'hold a key to its usual limits again').action(deleteOverride)
  withServiceOptions(override.command('list').description('all of a limiter'))
    .argument('<limiter>', 'its name')
    .action(listOverrides)
}

async function setOverride(limiter: string, words: string[], flags: OverrideFlags): Promise<void> {
  const key = keyOf(words, flags.key)
  const limits = limitsOf(flags)
  const body = { limiter, key, limits, ...(flags.for && { ttl: flags.for }) }
  const answer = await clientOf(flags).ask('PUT', '/v1/admin/overrides', 'done', body)
  const end = flags.for === undefined ? 'until it is deleted' : `for ${flags.for}`
  print(flags, answer, () => [
    `${keyText(key)} at ${printable(limiter)}: ${limits.map(limitText).join(', ')}, ${end}`,
  ])
}

async function deleteOverride(limiter: string, words: string[], flags: OverrideFlags): Promise<void> {
  const key = keyOf(words, flags.key)
  const answer = await clientOf(flags).ask('DELETE', '/v1/admin/overrides', 'done', { limiter, key })
  const { wasThere } = answer as { wasThere: boolean }
  const told = wasThere ? 'held to its usual limits again' : 'there was no override'
  print(flags, answer, () => [`${keyText(key)} at ${printable(limiter)}: ${told}`])
}

async function listOverrides(limiter: string, flags: ServiceFlags): Promise<void> {
  const answer = await clientOf(flags).ask(
    'GET',
    `/v1/admin/overrides?limiter=${encodeURIComponent(limiter)}`,
    'overrides',
  )
  const { overrides } = answer as { overrides: readonly OverrideTold[] }
  const rows = overrides.map(({ key, dimension, limits, expiresInMs }) => [
    keyText(dimension === undefined ? key : { [dimension]: key }),
    limits.map(limitText).join(', '),
    expiresInMs === 0 ? 'until it is deleted' : `for ${lasting(expiresInMs)}`,
  ])
  print(flags, answer, () => (rows.length === 0 ? ['no overrides'] : alignColumns(rows, '')))
}

function limitsOf({ limit = [], limits }: OverrideFlags): readonly Readonly<Record<string, unknown>>[] {
  const windows = limit.map(windowOf)
  const others = limits === undefined ? [] : parsed(limits)
  if (windows.length + others.length > 0) return [...windows, ...others]
  throw new UsageError('no limit is given; give --limit 1000/1m, or --limits')
}

/** `1000/1m`, `hourly=5000/1h` */
function windowOf(text: string): Readonly<Record<string, unknown>> {
  const match = /^(?:([A-Za-z0-9._-]{1,64})=)?(\d{1,13})\/(\d{1,9}(?:ms|s|m|h|d))$/.exec(text)
  if (match === null)
    throw new UsageError(`--limit is "${printable(text)}"; write it like 1000/1m or hourly=5000/1h`)
  const [, name, limit, window] = match
  return { kind: 'slidingWindow', limit: Number(limit), window, ...(name && { name }) }
}

function parsed(text: string): readonly Readonly<Record<string, unknown>>[] {
  try {
    const limits: unknown = JSON.parse(text)
    if (Array.isArray(limits)) return limits as Record<string, unknown>[]
  } catch {
    // Told below.
  }
  throw new UsageError(`--limits is "${printable(text)}"; it must be a JSON array`)
}
