// slidegate bans, find.

import type { Command } from 'commander'
import { formatCount, formatDuration, formatRoughDuration, printable } from '../../../replay/src/text.ts'
import type { BanStatus, FoundKey } from '../admin/api-types.ts'
import { keyText, numberUpTo } from '../client/arguments.ts'
import { addServiceCommand, clientOf, print, type ServiceFlags } from '../client/command.ts'
import type { BansAnswer, KeysAnswer } from '../http/admin-schemas.ts'
import type { Static } from '../json-schema.ts'

interface BansFlags extends ServiceFlags {
  readonly count: number
}

const MAX_COUNT = 1000

type Row = readonly [subject: string, facts: readonly string[]]

function linesOf(rows: readonly Row[], indent = ''): string[] {
  const width = Math.max(0, ...rows.map(([subject]) => subject.length))
  return rows.map(([subject, facts]) => `${indent}${subject.padEnd(width)}  ${facts.join(', ')}`)
}

export function addBansCommand(program: Command): void {
  addServiceCommand(program, 'bans', 'list banned and blocked keys, sorted by end time, latest first')
    .argument('[limiter]', 'list only this limiter')
    .option('--count <count>', 'number of keys', numberUpTo(MAX_COUNT), 100)
    .action(async (limiter: string | undefined, { count, ...flags }: BansFlags) => {
      const query = new URLSearchParams({ count: `${count}`, ...(limiter !== undefined && { limiter }) })
      const answer = await clientOf(flags).ask('GET', `/v1/admin/bans?${query}`, 'bans')
      const { bans, isComplete } = answer as Static<typeof BansAnswer>
      print(flags, answer, () => [
        ...(bans.length === 0 ? ['no keys are banned or blocked'] : linesOf(bans.map(banRow))),
        ...(isComplete ? [] : ['there are more']),
      ])
    })
}

function banRow({ limiter, dimension, key, type, untilMs, level, ...cause }: BanStatus): Row {
  const facts = [
    `${type === 'ban' ? 'banned' : 'blocked'}${untilText(untilMs)}`,
    ...(level === undefined ? [] : [`level ${formatCount(level)}`]),
    causeText(cause),
  ]
  return [`${keyText(dimension === undefined ? key : { [dimension]: key })} at ${printable(limiter)}`, facts]
}

function untilText(untilMs: number | null): string {
  return untilMs === null
    ? ' until unblocked'
    : ` for ${formatRoughDuration(Math.max(0, untilMs - Date.now()))}`
}

type Cause = Pick<BanStatus, 'who' | 'limits' | 'denials' | 'withinMs' | 'reason'>

/** Formats the cause of a ban or block: `after 10 denials in 1m, by hourly` or `by ops: scraping`. */
function causeText({ who, limits, denials, withinMs, reason }: Cause): string {
  if (denials === undefined || withinMs === undefined) {
    return `by ${printable(who)}${reason === undefined ? '' : `: ${printable(reason)}`}`
  }
  const by = limits === undefined ? '' : `, by ${limits.map((name) => printable(name)).join(', ')}`
  return `after ${formatCount(denials)} denials in ${formatDuration(withinMs)}${by}`
}

export function addFindCommand(program: Command): void {
  addServiceCommand(program, 'find', 'look up a key in all limiters and dimensions')
    .argument('<key>', 'key, without its dimension')
    .action(async (key: string, flags: ServiceFlags) => {
      const path = `/v1/admin/keys?key=${encodeURIComponent(key)}`
      const answer = await clientOf(flags).ask('GET', path, 'found')
      const { found, checked } = answer as Static<typeof KeysAnswer>
      print(flags, answer, () => [
        `${printable(key)}: found in ${found.length} of ${formatCount(checked)} limiters and dimensions`,
        ...linesOf(found.map(foundRow), '  '),
      ])
    })
}

function foundRow({ limiter, dimension, ...state }: FoundKey): Row {
  return [`${printable(limiter)}${dimension === undefined ? '' : ` ${printable(dimension)}`}`, factsOf(state)]
}

function factsOf({
  fullest,
  allowed,
  bans = 0,
  denials = 0,
  bannedUntilMs,
  blockedUntilMs,
  override,
  lastDeniedAtMs,
  problem,
}: Omit<FoundKey, 'limiter'>): string[] {
  return [
    ...(problem === undefined ? [] : [`unknown: ${printable(problem)}`]),
    ...(fullest === undefined
      ? []
      : [`${printable(fullest.name)}: ${formatCount(fullest.used)} of ${formatCount(fullest.limit)} used`]),
    ...(bannedUntilMs === undefined ? [] : [`banned${untilText(bannedUntilMs)}`]),
    ...(blockedUntilMs === undefined ? [] : [`blocked${untilText(blockedUntilMs)}`]),
    ...(allowed === false && bannedUntilMs === undefined && blockedUntilMs === undefined
      ? ['denied now']
      : []),
    ...(bans > 0 && bannedUntilMs === undefined ? [`bans so far: ${formatCount(bans)}`] : []),
    ...(denials > 0 ? [`denials toward the next ban: ${formatCount(denials)}`] : []),
    ...(override === undefined ? [] : [OVERRIDES[override]]),
    ...(lastDeniedAtMs === undefined
      ? []
      : [`last denied ${formatRoughDuration(Math.max(0, Date.now() - lastDeniedAtMs))} ago`]),
  ]
}

const OVERRIDES = {
  limits: 'override',
  exempt: 'exempt',
  configured: 'override in the configuration',
} as const
