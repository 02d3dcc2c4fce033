// slidegate limiters, usage, top, audit, capture.

import type { Command } from 'commander'
import { alignColumns, formatCount, formatRoughDuration, printable } from '../../../replay/src/text.ts'
import type { AuditEntry, SpanUsage } from '../admin/api-types.ts'
import { keyText, numberUpTo } from '../client/arguments.ts'
import { addServiceCommand, clientOf, print, type ServiceFlags, write } from '../client/command.ts'
import { limitText, nameOf } from '../client/format.ts'
import type { TopAnswer } from '../http/admin-schemas.ts'
import type { Static } from '../json-schema.ts'

interface LimiterReport {
  readonly name: string
  readonly limits: readonly (Readonly<Record<string, unknown>> & {
    readonly name: string
    readonly dimension?: string
    readonly shadow: boolean
  })[]
  readonly stats: { readonly storeErrors: Readonly<Record<string, number>> }
  readonly waiting: { readonly length: number }
}

export function addLimitersCommand(program: Command): void {
  addServiceCommand(
    program,
    'limiters',
    'list limiters, with their limits, waiting requests and errors',
  ).action(async (flags: ServiceFlags) => {
    const answer = await clientOf(flags).ask('GET', '/v1/admin/limiters', 'limiters')
    const { limiters } = answer as { limiters: readonly LimiterReport[] }
    print(flags, answer, () => limiters.flatMap(limiterLines))
  })
}

function limiterLines({ name, limits, stats, waiting }: LimiterReport): string[] {
  const errors = Object.values(stats.storeErrors).reduce((sum, count) => sum + count, 0)
  const notes = [
    ...(waiting.length > 0 ? [`${formatCount(waiting.length)} waiting`] : []),
    ...(errors > 0 ? [`${formatCount(errors)} store errors`] : []),
  ]
  const rows = limits.map((limit) => {
    const { dimension } = limit
    return [`${dimension === undefined ? '' : `${printable(dimension)}.`}${nameOf(limit)}`, limitText(limit)]
  })
  return [`${printable(name)}${notes.length > 0 ? `: ${notes.join(', ')}` : ''}`, ...alignColumns(rows)]
}

export function addUsageCommand(program: Command): void {
  addServiceCommand(program, 'usage', "show a limiter's decision rates over recent seconds and minutes")
    .argument('<limiter>', 'limiter name')
    .action(async (limiter: string, flags: ServiceFlags) => {
      const answer = await clientOf(flags).ask(
        'GET',
        `/v1/admin/limiters/${encodeURIComponent(limiter)}/usage`,
        'usage',
      )
      const { usage } = answer as { usage: readonly SpanUsage[] }
      print(flags, answer, () => alignColumns([USAGE_HEAD, ...usage.map(usageRow)], ''))
    })
}

const USAGE_HEAD = ['last', 'allowed', 'per s', 'denied', 'per s', 'shadow denied']

function usageRow(span: SpanUsage): string[] {
  const { allowed, denied, shadowDenied, allowedPerSecond, deniedPerSecond } = span
  return [
    formatRoughDuration(span.seconds * 1000),
    formatCount(allowed),
    formatCount(allowedPerSecond),
    formatCount(denied),
    formatCount(deniedPerSecond),
    formatCount(shadowDenied),
  ]
}

interface TopFlags extends ServiceFlags {
  readonly denials?: boolean
  readonly count: number
}

const MAX_COUNT = 1000

export function addTopCommand(program: Command): void {
  addServiceCommand(program, 'top', 'list the keys with the most requests in recent minutes')
    .argument('<limiter>', 'limiter name')
    .option('--denials', 'rank by denials')
    .option('--count <count>', 'number of keys', numberUpTo(MAX_COUNT), 10)
    .action(async (limiter: string, { denials, count, ...flags }: TopFlags) => {
      const by = denials ? 'denials' : 'requests'
      const path = `/v1/admin/limiters/${encodeURIComponent(limiter)}/top?by=${by}&count=${count}`
      const answer = await clientOf(flags).ask('GET', path, 'keys')
      const { spanMs, keys } = answer as Static<typeof TopAnswer>
      const head = `${printable(limiter)}: most ${by} in the last ${formatRoughDuration(spanMs)}`
      const rows = keys.map(({ dimension, key, count: most, error }) => [
        keyText(dimension === undefined ? key : { [dimension]: key }),
        error === 0 ? formatCount(most) : `${formatCount(most - error)} to ${formatCount(most)}`,
      ])
      print(flags, answer, () => [head, ...(rows.length === 0 ? ['  none'] : alignColumns(rows))])
    })
}

interface AuditFlags extends ServiceFlags {
  readonly count: number
}

export function addAuditCommand(program: Command): void {
  addServiceCommand(program, 'audit', 'list changes by operators, newest first')
    .option('--count <count>', 'number of entries', numberUpTo(MAX_COUNT), 50)
    .action(async ({ count, ...flags }: AuditFlags) => {
      const answer = await clientOf(flags).ask('GET', `/v1/admin/audit?count=${count}`, 'entries')
      const { entries } = answer as { entries: readonly AuditEntry[] }
      print(flags, answer, () => (entries.length === 0 ? ['no entries'] : entries.map(entryLine)))
    })
}

function entryLine(entry: AuditEntry): string {
  const { id, atMs, who, what, limiter, key, detail, summary, reason, instance, result, error } = entry
  const words = [
    new Date(atMs).toISOString(),
    printable(who),
    printable(what),
    ...(limiter === undefined ? [] : [printable(limiter)]),
    ...(key === undefined ? [] : [keyText(key)]),
    ...(summary !== undefined
      ? [printable(summary, 300)]
      : detail !== undefined
        ? [printable(JSON.stringify(detail), 300)]
        : []),
    ...(reason === undefined ? [] : [`"${printable(reason, 200)}"`]),
    ...(entry.isUndone ? ['undone'] : []),
    ...(result === 'done'
      ? []
      : [`${printable(result)}${error === undefined ? '' : `: ${printable(error, 300)}`}`]),
    `(${printable(instance)}, ${id})`,
  ]
  return words.join('  ')
}

interface CaptureFlags extends ServiceFlags {
  readonly count: number
}

const MAX_CAPTURED = 100_000

export function addCaptureCommand(program: Command): void {
  addServiceCommand(program, 'capture', 'print captured requests as JSON lines, for replay')
    .argument('[limiter]', 'print only this limiter')
    .option(
      '--count <count>',
      'maximum number of requests; prints the newest',
      numberUpTo(MAX_CAPTURED),
      10_000,
    )
    .action(async (limiter: string | undefined, { count, ...flags }: CaptureFlags) => {
      const query = new URLSearchParams({ count: `${count}`, ...(limiter !== undefined && { limiter }) })
      const parts = clientOf(flags).text(`/v1/admin/capture?${query}`, 'application/x-ndjson')
      for await (const part of parts) await write(part.split('\n').map(shown).join('\n'))
    })
}

/** Returns the line as equivalent JSON that is safe to print on a terminal. */
function shown(line: string): string {
  return printable(line, Number.POSITIVE_INFINITY)
}
