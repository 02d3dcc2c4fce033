// slidegate consume, peek, explain.

import type { Command } from 'commander'
import { formatCount, formatRoughDuration, printable } from '../../../replay/src/text.ts'
import { keyOf, keyText, wholeNumber } from '../client/arguments.ts'
import { addServiceCommand, clientOf, print, type ServiceFlags } from '../client/command.ts'
import {
  after,
  byWhat,
  type DecisionBody,
  decisionLines,
  type ExplanationBody,
  endWith,
  nameOf,
  overrideText,
} from '../client/format.ts'

interface AskFlags extends ServiceFlags {
  readonly key?: string
  readonly cost?: number
  readonly plan?: string
}

/** Adds a command that queries a key. */
function addKeyQuery(program: Command, name: string, description: string): Command {
  return addServiceCommand(program, name, description)
    .argument('<limiter>', 'limiter name')
    .argument('[key...]', 'key; with dimensions, pairs like user=42 address=192.0.2.7')
    .option('--key <key>', 'key that is used as is, even if it contains =')
    .option('--cost <units>', 'units that the request costs (default: 1)', wholeNumber)
    .option('--plan <plan>', 'plan to use, for a limiter with choosePlan')
}

function bodyOf(limiter: string, words: readonly string[], { key, cost, plan }: AskFlags): object {
  return { limiter, key: keyOf(words, key), ...(cost && { cost }), ...(plan !== undefined && { plan }) }
}

export function addConsumeCommand(program: Command): void {
  addKeyQuery(program, 'consume', 'request a decision, and charge the key if allowed').action(
    (limiter: string, words: string[], flags: AskFlags) => ask('/v1/consume', limiter, words, flags),
  )
}

export function addPeekCommand(program: Command): void {
  addKeyQuery(
    program,
    'peek',
    'show whether a request would be allowed now, without charging the key',
  ).action((limiter: string, words: string[], flags: AskFlags) => ask('/v1/peek', limiter, words, flags))
}

async function ask(path: string, limiter: string, words: string[], flags: AskFlags): Promise<void> {
  const decision = (await clientOf(flags).decide(path, bodyOf(limiter, words, flags))) as DecisionBody
  print(flags, decision, () => decisionLines(decision))
  endWith(decision)
}

const BAR = 24

/** Maximum number of entries in the list of units that free up. More would need a table. */
const STEPS = 4

export function addExplainCommand(program: Command): void {
  addKeyQuery(program, 'explain', "show a key's usage, bans and overrides, without charging it").action(
    async (limiter: string, words: string[], flags: AskFlags) => {
      const answer = await clientOf(flags).ask('POST', '/v1/explain', 'limits', bodyOf(limiter, words, flags))
      const explanation = answer as ExplanationBody
      const key = keyText(keyOf(words, flags.key))
      print(flags, answer, () => linesOf(printable(limiter), key, explanation))
      endWith(explanation)
    },
  )
}

function linesOf(limiter: string, key: string, explanation: ExplanationBody): string[] {
  const { allowed, cost, deniedBy, retryAfterMs, limits, bans, overrides } = explanation
  const retry = retryAfterMs === null ? "retrying won't help" : `try again ${after(retryAfterMs)}`
  const verdict = allowed ? 'allowed now' : `denied${byWhat(deniedBy)}; ${retry}`
  const width = Math.max(0, ...limits.map((limit) => nameOf(limit).length))
  const details = [
    ...bans
      .filter(({ level, denials }) => level + denials > 0)
      .map(({ dimension, blockedMs, sinceMs = 0, level, denials }) => {
        const which = dimension === undefined ? '' : `${printable(dimension)}: `
        const since = `since ${new Date(sinceMs).toISOString()}`
        const banned =
          blockedMs === 0 || blockedMs === null
            ? ''
            : `banned for ${formatRoughDuration(blockedMs)}, ${since}; `
        return `${which}${banned}consecutive bans: ${formatCount(level)}, denials toward the next ban: ${formatCount(denials)}`
      }),
    ...overrides.map((override) => {
      const { dimension } = override
      return `override${dimension === undefined ? '' : ` for ${printable(dimension)}`}: ${overrideText(override)}`
    }),
  ]
  return [
    `${key} at ${limiter}`,
    `  a request that costs ${formatCount(cost)} would be ${verdict}`,
    '',
    ...limits.flatMap((limit) => limitLines(limit, width)),
    ...(details.length > 0 ? ['', ...details.map((line) => `  ${line}`)] : []),
  ]
}

function limitLines(limit: ExplanationBody['limits'][number], width: number): string[] {
  const { used, remaining, frees } = limit
  const share = Math.min(1, used / limit.limit)
  // Shows at least one # if any units are used, and at least one dot if any are left.
  const full = used === 0 ? 0 : share >= 1 ? BAR : Math.min(BAR - 1, Math.max(1, Math.round(share * BAR)))
  const bar = `[${'#'.repeat(full)}${'.'.repeat(BAR - full)}]`
  const head = `  ${nameOf(limit).padEnd(width)}  ${bar}  ${formatCount(used)} of ${formatCount(limit.limit)} used, ${formatCount(remaining)} left`
  if (frees.length === 0) return [head]
  const shown = frees.length > STEPS ? [...frees.slice(0, STEPS - 1), frees.at(-1)!] : frees
  const steps = shown.map(({ afterMs, units }) => `${formatCount(units)} ${after(afterMs)}`)
  return [head, `  ${' '.repeat(width)}  units that free up: ${steps.join(', ')}`]
}
