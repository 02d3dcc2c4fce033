// The overrides of a memory store: the twin of limits/override.lua.

import type { LimitSet } from '../../limits/limit-set.ts'
import { FOREVER, type InForce, inForceAt, type Kept, setInForce } from '../../limits/override.ts'
import type { ListedOverride, OverrideChange, OverridesOutcome, Part } from '../../ops/request.ts'
import { mapKey } from '../../runtime/hash.ts'

/** A stored override. */
interface Override extends Kept {
  readonly key: string
  readonly given: string | undefined
  /** Sequential, so that `list` can continue after it. */
  readonly number: number
}

type Overrides = Map<string, Override>

/** Maximum overrides per page. */
const OVERRIDES_PAGE = 250
/** Maximum concurrent lists that continue without a search for each page. */
const MOST_PAGES = 16
const PAGE_CHARACTERS = 2 ** 16

/** Estimated bytes of an override without its texts. */
const RECORD_BYTES = 300

/** All overrides. {@link sweep} drops those that have ended. */
export class OverrideRecords {
  readonly #limiters = new Map<string, Overrides>()
  #sweep: Iterator<[string, Override]> = this.#all()
  /** The ends of the latest pages, where the next ones continue. */
  readonly #pages: { readonly after: string; readonly rest: Iterator<Override> }[] = []
  #numbers = 0
  /** Number of overrides, including ended ones until they are dropped. */
  size = 0
  /** Estimated bytes of all overrides. */
  bytes = 0

  /** The overrides in force, per part. `undefined` if there is none. */
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

  /** The limit set with the numbers in force. */
  setOf(part: Part, nowMs: number): LimitSet {
    return setInForce(part.set, this.inForce([part], nowMs)?.[0]?.rule ?? '')
  }

  has(part: Part): boolean {
    return this.size > 0 && this.#of(part) !== undefined
  }

  /** Checks the next `most` overrides and drops ended ones. Returns how many. */
  sweep(byMs: number, most: number): number {
    const { size } = this
    for (let left = Math.min(most, size); left > 0 && this.size > 0; ) {
      const { value, done } = this.#sweep.next()
      if (done) {
        this.#sweep = this.#all()
        continue
      }
      left--
      if (inForceAt(value[1], byMs) === undefined) this.#delete(value[0], value[1].key)
    }
    return size - this.size
  }

  /** @param given the key before encoding */
  change(
    part: Part,
    { rule, ruleMs, blockMs }: OverrideChange,
    given: string | undefined,
    nowMs: number,
  ): void {
    const known = this.#of(part)
    // A rule or block that has ended is dropped.
    const before = known && inForceAt(known, nowMs)
    const blockedUntilMs = before !== undefined && before.blockedMs > 0 ? known!.blockedUntilMs : 0
    const ends = (ms: number) => (ms === FOREVER ? FOREVER : nowMs + ms)
    const override: Override = {
      key: part.key,
      given: given || known?.given,
      rule: rule ?? before?.rule ?? '',
      endsAtMs: rule === undefined ? (known?.endsAtMs ?? 0) : ends(ruleMs ?? FOREVER),
      blockedUntilMs: blockMs === undefined ? blockedUntilMs : blockMs === 0 ? 0 : ends(blockMs),
      number: known?.number ?? ++this.#numbers,
    }
    if (inForceAt(override, nowMs) === undefined) this.#delete(part.set.limiter, part.key)
    else this.#write(part.set.limiter, override)
  }

  /** Drops a key's override if it has ended. */
  dropEnded(part: Part, nowMs: number): void {
    const known = this.#of(part)
    if (known !== undefined && inForceAt(known, nowMs) === undefined) this.#delete(part.set.limiter, part.key)
  }

  page(limiter: string, after: string, nowMs: number): OverridesOutcome {
    const overrides: ListedOverride[] = []
    const place = this.#pages.findIndex((page) => page.after === `${limiter} ${after}`)
    const rest = place < 0 ? this.#from(limiter, after) : this.#pages.splice(place, 1)[0]!.rest
    let characters = 0
    for (let read = 1; ; read++) {
      const { value, done } = rest.next()
      if (done) return { overrides, buckets: 1 }
      const inForce = inForceAt(value, nowMs)
      const { key, given, number } = value
      if (inForce !== undefined) overrides.push({ key, ...(given !== undefined && { given }), ...inForce })
      characters += textsOf(value)
      if (read < OVERRIDES_PAGE && characters < PAGE_CHARACTERS) continue
      this.#pages.push({ after: `${limiter} ${number}`, rest })
      if (this.#pages.length > MOST_PAGES) this.#pages.shift()
      return { overrides, next: `${number}`, buckets: 1 }
    }
  }

  /** The overrides after this number. */
  *#from(limiter: string, after: string): Generator<Override> {
    for (const override of this.#limiters.get(limiter)?.values() ?? []) {
      if (override.number > Number(after)) yield override
    }
  }

  #of({ set, key }: Part): Override | undefined {
    return set.isOverridable ? this.#limiters.get(set.limiter)?.get(mapKey(key)) : undefined
  }

  #write(limiter: string, override: Override): void {
    let overrides = this.#limiters.get(limiter)
    if (overrides === undefined) {
      overrides = new Map()
      this.#limiters.set(limiter, overrides)
    }
    const key = mapKey(override.key)
    this.#count(overrides.get(key), -1)
    this.#count(override, 1)
    overrides.set(key, override)
  }

  #delete(limiter: string, key: string): void {
    const overrides = this.#limiters.get(limiter)
    this.#count(overrides?.get(mapKey(key)), -1)
    if (overrides?.delete(mapKey(key)) && overrides.size === 0) this.#limiters.delete(limiter)
  }

  #count(override: Override | undefined, times: 1 | -1): void {
    if (override === undefined) return
    this.size += times
    this.bytes += times * (RECORD_BYTES + textsOf(override))
  }

  *#all(): Generator<[string, Override]> {
    for (const [limiter, overrides] of this.#limiters) {
      for (const override of overrides.values()) yield [limiter, override]
    }
  }
}

function textsOf({ key, given = '', rule }: Override): number {
  return key.length + given.length + rule.length
}
