import type { Command } from 'commander'
import { clientOf, print } from '../client/command.ts'
import { keyOf, keyText } from '../client/key-words.ts'
import {
  after,
  blockedText,
  byWhat,
  endWith,
  type LimitTold,
  nameOf,
  type OverrideTold,
  overrideText,
} from '../client/telling.ts'
import { formatCount, printable } from '../text.ts'
import { type AskFlags, addAskCommand, bodyOf } from './ask.ts'

interface ExplanationTold {
  readonly allowed: boolean
  readonly cost: number
  readonly deniedBy: readonly string[]
  readonly retryAfterMs: number | null
  readonly blockedMs: number | null
  readonly limits: readonly (LimitTold & {
    readonly used: number
    readonly frees: readonly { readonly afterMs: number; readonly units: number }[]
  })[]
  readonly bans: readonly {
    readonly dimension?: string
    readonly blockedMs: number | null
    readonly level: number
    readonly denials: number
  }[]
  readonly overrides: readonly OverrideTold[]
}

const BAR = 24

/** Of the steps in which units are free again: more would be a table. */
const STEPS = 4

export function addExplainCommand(program: Command): void {
  addAskCommand(program, 'explain', 'all that is known of a key; charges nothing').action(
    async (limiter: string, words: string[], flags: AskFlags) => {
      const told = await clientOf(flags).ask('POST', '/v1/explain', 'limits', bodyOf(limiter, words, flags))
      const explanation = told as ExplanationTold
      const key = keyText(keyOf(words, flags.key))
      print(flags, told, () => linesOf(printable(limiter), key, explanation))
      endWith(explanation)
    },
  )
}

function linesOf(limiter: string, key: string, explanation: ExplanationTold): string[] {
  const { allowed, cost, deniedBy, retryAfterMs, blockedMs, limits, bans, overrides } = explanation
  const verdict = allowed ? 'allowed now' : `denied${byWhat(deniedBy)}; it fits ${after(retryAfterMs)}`
  const width = Math.max(0, ...limits.map((limit) => nameOf(limit).length))
  const details = [
    ...(blockedMs === 0 ? [] : [blockedText(blockedMs)]),
    ...bans
      .filter(({ level, denials }) => level + denials > 0)
      .map(({ dimension, level, denials }) => {
        const which = dimension === undefined ? '' : `${printable(dimension)}: `
        return `${which}bans in a row: ${formatCount(level)}, denials towards the next: ${formatCount(denials)}`
      }),
    ...overrides.map((override) => {
      const { dimension } = override
      return `override${dimension === undefined ? '' : ` of ${printable(dimension)}`}: ${overrideText(override)}`
    }),
  ]
  return [
    `${key} at ${limiter}`,
    `  a request of ${formatCount(cost)} would be ${verdict}`,
    '',
    ...limits.flatMap((limit) => limitLines(limit, width)),
    ...(details.length > 0 ? ['', ...details.map((line) => `  ${line}`)] : []),
  ]
}

function limitLines(limit: ExplanationTold['limits'][number], width: number): string[] {
  const { used, remaining, frees } = limit
  const share = Math.min(1, used / limit.limit)
  // What is used is seen, however little it is; and so is what is left.
  const full = used === 0 ? 0 : share >= 1 ? BAR : Math.min(BAR - 1, Math.max(1, Math.round(share * BAR)))
  const bar = `[${'#'.repeat(full)}${'.'.repeat(BAR - full)}]`
  const head = `  ${nameOf(limit).padEnd(width)}  ${bar}  ${formatCount(used)} of ${formatCount(limit.limit)} used, ${formatCount(remaining)} left`
  if (frees.length === 0) return [head]
  const shown = frees.length > STEPS ? [...frees.slice(0, STEPS - 1), frees.at(-1)!] : frees
  const steps = shown.map(({ afterMs, units }) => `${formatCount(units)} ${after(afterMs)}`)
  return [head, `  ${' '.repeat(width)}  free again: ${steps.join(', ')}`]
}
