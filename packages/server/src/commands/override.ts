// slidegate override set, delete, list.

import type { Command } from 'commander'
import { UsageError } from '../../../replay/src/errors.ts'
import { printable, printableJson } from '../../../replay/src/text.ts'
import { collect, duration, keyOf, keyText } from '../client/arguments.ts'
import {
  clientOf,
  isForPeople,
  print,
  type ReasonFlags,
  reasonOf,
  type ServiceFlags,
  withServiceOptions,
  write,
} from '../client/command.ts'
import { type Numbers, type OverrideBody, overrideText, type Rule, ruleText } from '../client/format.ts'
import { isObject } from '../is-object.ts'
import { addKeyCommand } from './actions.ts'

interface OverrideFlags extends ServiceFlags, ReasonFlags {
  readonly key?: string
  readonly limit?: readonly string[]
  readonly limits?: string
  readonly exempt?: boolean
  readonly ttl?: string
}

export function addOverrideCommand(program: Command): void {
  const override = program
    .command('override')
    .description('manage overrides: custom limits for individual keys')
  addKeyCommand(override, 'set', "change a key's limits")
    .option(
      '--limit <limit>',
      'new limit, such as 300, 300/1m, or minute=300 for the limit named minute; repeatable',
      collect,
    )
    .option('--limits <json>', 'new numbers for named limits, as JSON, such as {"burst":{"capacity":50}}')
    .option('--exempt', 'exempt the key: its limits count requests but never deny them')
    .option('--ttl <duration>', 'lifetime, such as 1h or 7d (default: until deleted)', duration)
    .action(setOverride)
  addKeyCommand(override, 'delete', "delete a key's override and block").action(deleteOverride)
  withServiceOptions(override.command('list').description("list a limiter's overrides"))
    .argument('<limiter>', 'limiter name')
    .action(listOverrides)
}

async function setOverride(limiter: string, words: string[], flags: OverrideFlags): Promise<void> {
  const key = keyOf(words, flags.key)
  const rule = ruleOf(flags)
  const { exempt, limits } = rule
  const change = exempt ? { exempt } : { limits: limits?.[ONLY] ?? limits }
  const body = { limiter, key, ...change, ...(flags.ttl && { ttl: flags.ttl }), ...reasonOf(flags) }
  const answer = await clientOf(flags).ask('PUT', '/v1/admin/overrides', 'done', body)
  const end = flags.ttl === undefined ? 'until deleted' : `for ${flags.ttl}`
  const { hint } = answer as { readonly hint?: string }
  print(flags, answer, () => [
    `${keyText(key)} at ${printable(limiter)}: ${ruleText(rule)}, ${end}`,
    ...(hint === undefined ? [] : [`note: ${printable(hint, 300)}`]),
  ])
}

async function deleteOverride(limiter: string, words: string[], flags: OverrideFlags): Promise<void> {
  const key = keyOf(words, flags.key)
  const body = { limiter, key, ...reasonOf(flags) }
  const answer = await clientOf(flags).ask('DELETE', '/v1/admin/overrides', 'done', body)
  const { existed } = answer as { existed: boolean }
  const result = existed ? 'override deleted' : 'no override found'
  print(flags, answer, () => [`${keyText(key)} at ${printable(limiter)}: ${result}`])
}

async function listOverrides(limiter: string, flags: ServiceFlags): Promise<void> {
  const isHuman = isForPeople(flags)
  const path = `/v1/admin/overrides?limiter=${encodeURIComponent(limiter)}`
  let count = 0
  for await (const line of clientOf(flags).lines(path)) {
    count++
    const override = JSON.parse(line) as OverrideBody
    await write(`${isHuman ? lineOf(override) : printableJson(override, 0)}\n`)
  }
  if (isHuman && count === 0) await write('no overrides\n')
}

function lineOf(override: OverrideBody): string {
  const { key, dimension } = override
  return `${keyText(dimension === undefined ? key : { [dimension]: key })}  ${overrideText(override)}`
}

/** The empty name stands for a key's only limit. */
const ONLY = ''

function ruleOf({ limit = [], limits, exempt }: OverrideFlags): Rule {
  const given = [...limit.map(numbersOf), ...(limits === undefined ? [] : parsed(limits))]
  if (exempt && given.length > 0)
    throw new UsageError('both limits and --exempt are set; pass only one of them')
  if (exempt) return { exempt }
  if (given.length === 0) throw new UsageError('no limits are given; pass --limit, --limits or --exempt')
  if (given.length > 1 && given.some(([name]) => name === ONLY)) {
    throw new UsageError('with several limits, each needs a name, such as minute=300')
  }
  return { limits: Object.fromEntries(given) }
}

type NamedNumbers = readonly [name: string, numbers: Numbers]

/** Parses a limit: `300`, `300/1m` or `minute=300/1m`. */
function numbersOf(text: string): NamedNumbers {
  const match = /^(?:([A-Za-z0-9._-]{1,64})=)?(\d{1,13})(?:\/(\d{1,9}(?:ms|s|m|h|d)))?$/.exec(text)
  if (match === null) {
    throw new UsageError(
      `invalid --limit "${printable(text)}"; use a value such as 300, 300/1m or minute=300`,
    )
  }
  const [, name = ONLY, limit, window] = match
  return [name, { limit: Number(limit), ...(window !== undefined && { window }) }]
}

function parsed(text: string): readonly NamedNumbers[] {
  try {
    const limits: unknown = JSON.parse(text)
    // Numbers without a name apply to the key's only limit.
    if (isObject(limits)) {
      return Object.values(limits).every(isObject)
        ? (Object.entries(limits) as NamedNumbers[])
        : [[ONLY, limits]]
    }
  } catch {
    // Invalid JSON is reported below.
  }
  throw new UsageError(`invalid --limits "${printable(text)}"; it must be a JSON object`)
}
