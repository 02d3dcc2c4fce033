import type { Override, OverrideChange } from '../../../src/index.ts'
import type { Declaration } from '../declarations.ts'
import type { Ruled } from '../oracle.ts'

/** Numbers for a limit. A kind that doesn't have one of them ignores all of them. */
export interface OwnNumbers {
  readonly limit?: number
  readonly window?: number
  readonly capacity?: number
  readonly refill?: number
}

/** Numbers by limit name. `''` is the only limit. */
export type NumbersByName = Readonly<Record<string, OwnNumbers>>

export type Change = NumbersByName | 'exempt' | 'block'

/** Returns the change in the format of the public API. */
export function changeOf(change: Change): OverrideChange {
  return typeof change === 'object' && change[''] !== undefined ? change[''] : change
}

/** The parts of an override that are in force. */
export interface InForce {
  readonly rule: NumbersByName | 'exempt' | undefined
  readonly ruleMs: number
  readonly blockedMs: number
}

/** The override of one key: a rule and a block. Each ends at its own time of the store's clock. */
export class OverrideModel {
  #rule: InForce['rule']
  #ruleEndsMs = 0
  #blockEndsMs = 0

  /** Sets the rule or the block, and clears whichever has ended. */
  set(change: Change, ttlMs: number | undefined, nowMs: number): void {
    this.#forgetEnded(nowMs)
    const endsMs = nowMs + (ttlMs ?? Number.POSITIVE_INFINITY)
    if (change === 'block') this.#blockEndsMs = endsMs
    else [this.#rule, this.#ruleEndsMs] = [change, endsMs]
  }

  unblock(nowMs: number): void {
    this.#forgetEnded(nowMs)
    this.#blockEndsMs = 0
  }

  /** Returns whether anything was in force. */
  delete(nowMs: number): boolean {
    const existed = this.at(nowMs) !== undefined
    this.#rule = undefined
    this.#blockEndsMs = 0
    return existed
  }

  at(nowMs: number): InForce | undefined {
    const ruleMs = this.#rule === undefined ? 0 : Math.max(0, this.#ruleEndsMs - nowMs)
    const blockedMs = Math.max(0, this.#blockEndsMs - nowMs)
    if (ruleMs === 0 && blockedMs === 0) return undefined
    return { rule: ruleMs === 0 ? undefined : this.#rule, ruleMs, blockedMs }
  }

  #forgetEnded(nowMs: number): void {
    const { ruleMs = 0, blockedMs = 0 } = this.at(nowMs) ?? {}
    if (ruleMs === 0) this.#rule = undefined
    if (blockedMs === 0) this.#blockEndsMs = 0
  }
}

/** Returns the override as the library returns it, except for the key and its dimension. */
export function shown({ rule, ruleMs, blockedMs }: InForce, declared: readonly Declaration[]) {
  const byName = typeof rule === 'object' ? rule : undefined
  const unused = Object.keys(byName ?? {}).filter(
    (name) => !declared.some((each, i) => changed(each, numbersOf(byName, i, declared.length, name))),
  )
  return {
    ...(rule === 'exempt' && { exempt: true as const }),
    ...(byName && {
      limits: Object.fromEntries(
        Object.entries(byName).map(([name, { window, ...numbers }]) => [
          name,
          { ...numbers, ...(window !== undefined && { windowMs: window }) },
        ]),
      ),
    }),
    ...(rule !== undefined && ruleMs !== Number.POSITIVE_INFINITY && { expiresInMs: ruleMs }),
    ...(blockedMs > 0 && { blockedMs }),
    ...(unused.length > 0 && { unused }),
  } satisfies Omit<Override, 'key' | 'dimension'>
}

/** Returns the declarations with the numbers of a rule. */
export function withNumbers(declared: readonly Declaration[], rule: InForce['rule']): Declaration[] {
  const byName = typeof rule === 'object' ? rule : undefined
  return declared.map((each, i) => changed(each, numbersOf(byName, i, declared.length)) ?? each)
}

/** Makes all limits exempt, so that they only count. They still use and share the same logs. */
export function exempt(ruled: readonly Ruled[]): Ruled[] {
  return ruled.map((each) =>
    each.limit.shadow ? each : { ...each, isExempt: true, limit: { ...each.limit, shadow: true } },
  )
}

function numbersOf(
  byName: NumbersByName | undefined,
  place: number,
  limits: number,
  only?: string,
): OwnNumbers | undefined {
  const name = `limit${place}`
  const used = byName?.[name] !== undefined ? name : limits === 1 ? '' : undefined
  return used === undefined || (only !== undefined && only !== used) ? undefined : byName?.[used]
}

/** Returns the declaration with these numbers, or `undefined` if they don't fit its kind. */
function changed(declared: Declaration, numbers: OwnNumbers | undefined): Declaration | undefined {
  if (numbers === undefined) return undefined
  const { limit, window, capacity, refill } = numbers
  if (declared.kind === 'bucket') {
    if (limit !== undefined || window !== undefined) return undefined
    return { ...declared, limit: capacity ?? declared.limit, refill: refill ?? declared.refill }
  }
  if (capacity !== undefined || refill !== undefined) return undefined
  if (declared.kind !== 'sliding') {
    return limit === undefined || window !== undefined ? undefined : { ...declared, limit }
  }
  const precision = declared.precision && Math.min(declared.precision, declared.window)
  if (window !== undefined && window < (precision ?? 1)) return undefined
  return { ...declared, precision, limit: limit ?? declared.limit, window: window ?? declared.window }
}
