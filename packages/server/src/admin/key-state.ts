// A key's override and block: their state before a change, and how to restore it.

import { isDeepStrictEqual } from 'node:util'
import type { AnyKey, Limiter, LimitNumbers, OverrideChange } from 'slidegate'
import { endOf } from './ban-status.ts'

/** A key's limits in force, its overrides and its blocks. Times are epoch milliseconds on the store's clock. */
export interface KeyState {
  readonly atMs: number
  readonly limits: readonly LimitState[]
  /** One entry per dimension. Dimensions without overrides are omitted. */
  readonly overrides: readonly OverrideState[]
}

export interface LimitState {
  readonly name: string
  readonly kind: string
  readonly limit: number
  readonly windowMs: number
}

export interface OverrideState {
  readonly dimension?: string
  readonly limits?: Readonly<Record<string, LimitNumbers>>
  readonly exempt?: true
  /** When the limits or the exemption end. `null` if they last until they are deleted. */
  readonly untilMs?: number | null
  /** When the block ends. `null` if it lasts until it is lifted. */
  readonly blockedUntilMs?: number | null
  /** When the automatic ban ends. */
  readonly bannedUntilMs?: number | null
}

/** @throws {StoreUnavailableError} and whatever `explain` throws */
export async function keyStateOf(limiter: Limiter<AnyKey>, key: AnyKey | Partial<AnyKey>): Promise<KeyState> {
  // With `charges`, the result includes each limit's kind.
  const { atMs, limits, bans, overrides } = await limiter.explain(key as AnyKey, { charges: true })
  const end = (ms: number) => endOf(atMs, ms)
  const found = new Map<string | undefined, OverrideState>()
  for (const { dimension, limits, exempt, expiresInMs = Number.POSITIVE_INFINITY, blockedMs } of overrides) {
    const hasRule = limits !== undefined || exempt
    found.set(dimension, {
      ...(dimension !== undefined && { dimension }),
      ...(limits !== undefined && { limits }),
      ...(exempt && { exempt }),
      ...(hasRule && { untilMs: end(expiresInMs) }),
      ...(blockedMs !== undefined && { blockedUntilMs: end(blockedMs) }),
    })
  }
  for (const { dimension, blockedMs } of bans) {
    const of = dimension !== undefined && { dimension }
    if (blockedMs > 0) found.set(dimension, { ...of, ...found.get(dimension), bannedUntilMs: end(blockedMs) })
  }
  return {
    atMs,
    limits: limits.map(({ name, limit, windowMs, declared }) => ({
      ...{ name, kind: declared?.kind ?? '', limit, windowMs },
    })),
    overrides: Array.from(found.values()),
  }
}

/** Maximum difference between two readings of the same end time. Clocks may be adjusted in between. */
const SAME_MS = 1000

/** Whether overrides and blocks are still the same. Ignores automatic bans, which come and go. */
export function isSameState(one: KeyState, other: KeyState): boolean {
  return dimensionsOf(one, other).every((dimension) => {
    const [a, b] = [stateIn(one, dimension), stateIn(other, dimension)]
    return (
      isDeepStrictEqual([a.limits, a.exempt], [b.limits, b.exempt]) &&
      isSameEnd(a.untilMs, b.untilMs) &&
      isSameEnd(a.blockedUntilMs, b.blockedUntilMs)
    )
  })
}

export function dimensionsOf(one: KeyState, other: KeyState): readonly (string | undefined)[] {
  return Array.from(new Set([...one.overrides, ...other.overrides].map(({ dimension }) => dimension)))
}

export function stateIn({ overrides }: KeyState, dimension: string | undefined): OverrideState {
  return overrides.find((each) => each.dimension === dimension) ?? {}
}

export function isSameEnd(a: number | null | undefined, b: number | null | undefined): boolean {
  return typeof a === 'number' && typeof b === 'number' ? Math.abs(a - b) <= SAME_MS : a === b
}

/**
 * Restores overrides and blocks for their remaining time. A ban is restored as a block.
 *
 * @param now the current state
 * @param earlier the state to restore
 * @throws whatever {@link Limiter.overrides} throws
 */
export async function restoreState(
  { overrides }: Limiter<AnyKey>,
  key: AnyKey | Partial<AnyKey>,
  now: KeyState,
  earlier: KeyState,
): Promise<void> {
  for (const dimension of dimensionsOf(now, earlier)) {
    const one = dimension === undefined || typeof key === 'string' ? key : { [dimension]: key[dimension]! }
    const [is, was] = [stateIn(now, dimension), stillIn(stateIn(earlier, dimension), now.atMs)]
    const isExtra =
      (is.untilMs !== undefined && !was.change) || (is.blockedUntilMs !== undefined && !was.block)
    // Only `delete` keeps bans, but it removes both the override and the block, so the one to keep is set again.
    if (isExtra) await overrides.delete(one as AnyKey)
    if (was.change) await overrides.set(one as AnyKey, was.change, { ttl: was.changeMs })
    if (was.block) await overrides.set(one as AnyKey, 'block', { ttl: was.blockMs })
  }
}

/** Whether a restore would change nothing, because everything to restore has expired. */
export function isExpired(earlier: KeyState, now: KeyState): boolean {
  const isSet = now.overrides.some(
    ({ untilMs = 0, blockedUntilMs = 0 }) => untilMs !== 0 || blockedUntilMs !== 0,
  )
  const left = earlier.overrides.map((each) => stillIn(each, now.atMs))
  return !isSet && left.every(({ change, block }) => !change && !block)
}

/** Returns a state without automatic bans. An undo can restore a lifted ban, but can't lift a ban. */
export function withoutBans({ overrides, ...state }: KeyState): KeyState {
  return { ...state, overrides: overrides.map(({ bannedUntilMs: _, ...each }) => each) }
}

/** The minimum duration of an override or block. */
const MIN_MS = 10

/** The remaining part of an override, block or ban. If a duration is undefined, it lasts until it is deleted. */
function stillIn(state: OverrideState, nowMs: number) {
  const { limits, exempt, untilMs, blockedUntilMs, bannedUntilMs } = state
  const left = (endMs: number | null | undefined) =>
    endMs === undefined ? 0 : endMs === null ? Number.POSITIVE_INFINITY : endMs - nowMs
  const [changeMs, blockMs] = [left(untilMs), Math.max(left(blockedUntilMs), left(bannedUntilMs))]
  const ttl = (ms: number) => (ms === Number.POSITIVE_INFINITY ? undefined : ms)
  return {
    change: changeMs >= MIN_MS ? (exempt ? 'exempt' : changeTo(limits!)) : undefined,
    changeMs: ttl(changeMs),
    block: blockMs >= MIN_MS,
    blockMs: ttl(blockMs),
  }
}

function changeTo(limits: Readonly<Record<string, LimitNumbers>>): OverrideChange {
  const named = Object.entries(limits).map(([name, { windowMs, ...numbers }]) => {
    return [name, { ...numbers, ...(windowMs !== undefined && { window: windowMs }) }] as const
  })
  // The empty name stands for the key's only limit.
  return named[0]?.[0] === '' ? named[0][1] : Object.fromEntries(named)
}
