import { FOREVER, type InForce } from '../limits/override.ts'
import { mapKey } from '../map-key.ts'
import type { ListedOverride, OverrideOp, OverridesOp, OverridesOutcome, Part } from './store.ts'

/** An override as it is kept. Times are by the store's clock, {@link FOREVER} for never. */
interface Override {
  readonly key: string
  readonly given: string | undefined
  readonly rule: string
  readonly endsAtMs: number
  readonly blockedUntilMs: number
  /** Rises from record to record. */
  readonly number: number
}

type Overrides = Map<string, Override>

/** Overrides on a page of a list. */
const PAGE = 250

/** Others that are looked at with each write, and now and then. */
const SWEPT = 2

/** Those that are looked at to make room once. */
const SWEPT_FOR_ROOM = 64

/** The overrides of a memory store: the twin of limits/override.lua. */
export class OverrideRecords {
  readonly #graceMs: number
  readonly #limiters = new Map<string, Overrides>()
  #turn: Iterator<[string, Override]> = this.#all()
  /** Where the last page ended, for the next to go on from there. */
  #page: { readonly after: string; readonly rest: Iterator<Override> } | undefined
  #numbers = 0
  size = 0

  /** One that has ended is kept for `graceMs`, unless its room is needed: the clock may be set back. */
  constructor(graceMs: number) {
    this.#graceMs = graceMs
  }

  /** What is in force per part; nothing where that is nothing. */
  inForce(parts: readonly Part[], nowMs: number): (InForce | undefined)[] | undefined {
    if (this.size === 0) return undefined
    let told: (InForce | undefined)[] | undefined
    for (let i = 0; i < parts.length; i++) {
      const found = this.#of(parts[i]!)
      const inForce = found && inForceAt(found, nowMs)
      if (inForce === undefined) continue
      told ??= new Array<InForce | undefined>(parts.length).fill(undefined)
      told[i] = inForce
    }
    return told
  }

  has(part: Part): boolean {
    return this.size > 0 && this.#of(part) !== undefined
  }

  write(part: Part, { rule, ruleMs, blockMs, given }: OverrideOp, nowMs: number): void {
    const known = this.#of(part)
    // A half that has ended is forgotten.
    const before = known && inForceAt(known, nowMs)
    const isBlocked = before !== undefined && before.blockedMs > 0
    const ends = (ms: number) => (ms === FOREVER ? FOREVER : nowMs + ms)
    const override: Override = {
      key: part.key,
      given: given ?? known?.given,
      rule: rule ?? before?.rule ?? '',
      endsAtMs: rule === undefined ? (known?.endsAtMs ?? 0) : ends(ruleMs ?? FOREVER),
      blockedUntilMs:
        blockMs === undefined ? (isBlocked ? known!.blockedUntilMs : 0) : blockMs === 0 ? 0 : ends(blockMs),
      number: known?.number ?? ++this.#numbers,
    }
    if (inForceAt(override, nowMs) === undefined) this.#delete(part.set.limiter, override)
    else this.#put(part.set.limiter, override)
    this.sweep(nowMs)
  }

  /** Drops some that ended long ago. */
  sweep(nowMs: number): void {
    this.#sweep(SWEPT, nowMs - this.#graceMs)
  }

  /** Drops some that have ended. */
  makeRoom(nowMs: number): void {
    this.#sweep(SWEPT_FOR_ROOM, nowMs)
  }

  page({ parts, after }: OverridesOp, nowMs: number): OverridesOutcome {
    const { limiter } = parts[0]!.set
    const overrides: ListedOverride[] = []
    const rest =
      this.#page !== undefined && this.#page.after === `${limiter} ${after}`
        ? this.#page.rest
        : this.#from(limiter, after)
    this.#page = undefined
    for (;;) {
      const { value, done } = rest.next()
      if (done) return { overrides, buckets: 1 }
      const inForce = inForceAt(value, nowMs)
      const { key, given, number } = value
      if (inForce !== undefined) overrides.push({ key, ...(given !== undefined && { given }), ...inForce })
      if (overrides.length < PAGE) continue
      this.#page = { after: `${limiter} ${number}`, rest }
      return { overrides, next: `${number}`, buckets: 1 }
    }
  }

  /** Those written after the one of this number. */
  *#from(limiter: string, after: string): Generator<Override> {
    for (const override of this.#limiters.get(limiter)?.values() ?? []) {
      if (override.number > Number(after)) yield override
    }
  }

  #of({ set, key }: Part): Override | undefined {
    return set.isOverridable ? this.#limiters.get(set.limiter)?.get(mapKey(key)) : undefined
  }

  #put(limiter: string, override: Override): void {
    let overrides = this.#limiters.get(limiter)
    if (overrides === undefined) {
      overrides = new Map()
      this.#limiters.set(limiter, overrides)
    }
    const { size } = overrides
    overrides.set(mapKey(override.key), override)
    this.size += overrides.size - size
  }

  #delete(limiter: string, { key }: Override): void {
    const overrides = this.#limiters.get(limiter)
    if (overrides?.delete(mapKey(key)) !== true) return
    this.size--
    if (overrides.size === 0) this.#limiters.delete(limiter)
  }

  /** Looks at some in turn, and drops those that had ended by then. */
  #sweep(count: number, byMs: number): void {
    for (let i = 0; i < count && this.size > 0; i++) {
      const { value, done } = this.#turn.next()
      if (done) this.#turn = this.#all()
      else if (inForceAt(value[1], byMs) === undefined) this.#delete(value[0], value[1])
    }
  }

  *#all(): Generator<[string, Override]> {
    for (const [limiter, overrides] of this.#limiters) {
      for (const override of overrides.values()) yield [limiter, override]
    }
  }
}

function inForceAt({ rule, endsAtMs, blockedUntilMs }: Override, nowMs: number): InForce | undefined {
  const ruleMs = rule === '' ? 0 : leftOf(endsAtMs, nowMs)
  const blockedMs = leftOf(blockedUntilMs, nowMs)
  if (ruleMs === 0 && blockedMs === 0) return undefined
  return { rule: ruleMs === 0 ? '' : rule, ruleMs, blockedMs }
}

function leftOf(endsAtMs: number, nowMs: number): number {
  return endsAtMs === FOREVER ? FOREVER : Math.max(0, endsAtMs - nowMs)
}
