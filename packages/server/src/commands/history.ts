// slidegate history.

import { type Command, Option } from 'commander'
import { UsageError } from '../../../replay/src/errors.ts'
import { alignColumns, formatCount, printable } from '../../../replay/src/text.ts'
import type { CountSeries } from '../admin/api-types.ts'
import { keyOf, keyText } from '../client/arguments.ts'
import { addServiceCommand, clientOf, print, type ServiceFlags } from '../client/command.ts'

interface HistoryFlags extends ServiceFlags {
  readonly key?: string
  readonly range: string
}

export function addHistoryCommand(program: Command): void {
  addServiceCommand(
    program,
    'history',
    'show the request counts for a limiter or a key over the last hour or week',
  )
    .argument('<limiter>', 'limiter name')
    .argument('[key...]', 'key; with dimensions, one pair like user=42. Default: all requests')
    .option('--key <key>', 'key that is used as is, even if it contains =')
    .addOption(
      new Option('--range <range>', 'the last hour by minute, or the last week by hour')
        .choices(['1h', '7d'])
        .default('1h'),
    )
    .action(async (limiter: string, words: string[], { key: literal, range, ...flags }: HistoryFlags) => {
      const isAll = words.length === 0 && literal === undefined
      const key = isAll ? undefined : oneKeyOf(words, literal)
      const query = new URLSearchParams({ range, ...key })
      const path = `/v1/admin/limiters/${encodeURIComponent(limiter)}/history?${query}`
      const answer = (await clientOf(flags).ask('GET', path, 'seconds')) as CountSeries
      const of =
        key === undefined ? '' : `${keyText(key.dimension ? { [key.dimension]: key.key } : key.key)} at `
      const head = `${of}${printable(limiter)}, by ${range === '1h' ? 'minute' : 'hour'}`
      print(flags, answer, () => [head, ...alignColumns(rowsOf(answer))])
    })
}

/** @throws {UsageError} */
function oneKeyOf(
  words: readonly string[],
  literal: string | undefined,
): { readonly key: string; readonly dimension?: string } {
  const key = keyOf(words, literal)
  if (typeof key === 'string') return { key }
  const [[dimension, value] = ['', null], ...others] = Object.entries(key)
  if (others.length > 0 || value === null)
    throw new UsageError(`the history is for one key; pass only one dimension, such as ${dimension}=42`)
  return { dimension, key: value }
}

/** Returns the rows of a table, with a header. There is one row per minute or hour, and one per gap. */
function rowsOf({ seconds, allowed, denied, shadowDenied, units }: CountSeries): string[][] {
  const named = { allowed, denied, ...(shadowDenied && { 'shadow denied': shadowDenied }), units }
  const columns = Object.values(named)
  const rows = seconds.flatMap((second, i) => {
    const time = `${new Date(1000 * second).toISOString().slice(0, 16)}Z`
    if (allowed[i] !== null) return [[time, ...columns.map((column) => formatCount(column[i] ?? 0))]]
    return i > 0 && allowed[i - 1] === null ? [] : [[time, 'unknown']]
  })
  return [['from', ...Object.keys(named)], ...rows]
}
