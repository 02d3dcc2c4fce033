// Describes a change in words: `minute: 120 → 300 in any 1 min, for 1 h`.

import { formatCount, formatRoughDuration } from '../../../replay/src/text.ts'
import {
  dimensionsOf,
  isSameEnd,
  type KeyState,
  type LimitState,
  type OverrideState,
  stateIn,
} from './key-state.ts'
import { ALL } from './shadow-switches.ts'

/** A limiter's shadow switches. */
export interface ShadowState {
  readonly shadow: Readonly<Record<string, boolean>>
}

export type State = KeyState | ShadowState

export function isShadow(state: State): state is ShadowState {
  return 'shadow' in state
}

/** The differences between two states of the same key or limiter. */
export function changeWords(before: State, after: State): string {
  const words =
    isShadow(before) || isShadow(after)
      ? shadowWords(shadowOf(before), shadowOf(after))
      : [
          ...limitWords(before, after),
          ...dimensionsOf(before, after).flatMap((dimension) =>
            overrideWords(stateIn(before, dimension), stateIn(after, dimension), after.atMs),
          ),
        ]
  return words.join(', ') || 'no change'
}

function shadowOf(state: State): ShadowState['shadow'] {
  return isShadow(state) ? state.shadow : {}
}

function shadowWords(before: ShadowState['shadow'], after: ShadowState['shadow']): string[] {
  const mode = (shadow: boolean | undefined) =>
    shadow === undefined ? 'as configured' : shadow ? 'shadow' : 'enforced'
  const names = Array.from(new Set([...Object.keys(before), ...Object.keys(after)]))
  return names
    .filter((name) => before[name] !== after[name])
    .map((name) => `${name === ALL ? 'all limits' : name}: ${mode(before[name])} → ${mode(after[name])}`)
}

/** Limits whose numbers differ. */
function limitWords(before: KeyState, after: KeyState): string[] {
  return after.limits.flatMap((limit) => {
    const { name, windowMs } = limit
    const old = before.limits.find((each) => each.name === name)
    if (old === undefined || (old.limit === limit.limit && old.windowMs === windowMs)) return []
    const from = `${formatCount(old.limit)}${per(old) === per(limit) ? '' : ` ${per(old)}`}`
    return [`${name}: ${from} → ${formatCount(limit.limit)} ${per(limit)}`]
  })
}

function per({ kind, windowMs }: LimitState): string {
  if (kind === 'tokenBucket') return `tokens, refilled in ${lasting(windowMs)}`
  if (kind === 'concurrency') return 'at a time'
  if (kind === 'calendarWindow') return 'per calendar window'
  return `${kind === 'fixedWindow' ? 'per' : 'in any'} ${lasting(windowMs)}`
}

/** Describes exemptions, blocks and bans that began or ended, with their durations. */
function overrideWords(was: OverrideState, now: OverrideState, atMs: number): string[] {
  const { exempt, untilMs, blockedUntilMs } = now
  return [
    ...(exempt && !was.exempt ? ['exempt'] : []),
    ...(was.exempt && !exempt ? ['no longer exempt'] : []),
    ...(untilMs === undefined || isSameEnd(untilMs, was.untilMs) ? [] : [until(untilMs, atMs, 'deleted')]),
    ...(blockedUntilMs === undefined || isSameEnd(blockedUntilMs, was.blockedUntilMs)
      ? []
      : [`blocked ${until(blockedUntilMs, atMs, 'unblocked')}`]),
    ...(was.blockedUntilMs !== undefined && blockedUntilMs === undefined ? ['no longer blocked'] : []),
    ...(was.bannedUntilMs !== undefined && now.bannedUntilMs === undefined ? ['no longer banned'] : []),
  ]
}

function until(untilMs: number | null, atMs: number, end: string): string {
  return untilMs === null ? `until ${end}` : `for ${lasting(untilMs - atMs)}`
}

/** Formats a duration: `1 h`, `1 min 30 s`. */
export function lasting(ms: number): string {
  return formatRoughDuration(ms).replaceAll(
    /(\d+)([a-z]+)/g,
    (_, count, unit) => `${count} ${unit === 'm' ? 'min' : unit}`,
  )
}
