// A memory store's overrides: the counterpart of limits/override.lua.

import { FOREVER, type InForce, inForceAt, type Kept } from '../../limits/override.ts'
import type { ListedOverride, OverrideChange, OverridesOutcome, Part } from '../../ops/request.ts'
import { mapKey } from '../../runtime/hash.ts'

interface Override extends Kept {
  readonly key: string
  readonly given: string | undefined
  /** Sequential, so that a list can continue after this override. */
  readonly number: number
}

/** A page of a list ends after this many overrides, or after this many characters. */
const OVERRIDES_PAGE = 250
const PAGE_CHARACTERS = 2 ** 16

/** Maximum number of lists whose position is kept. Other lists search for their position on each page. */
const MOST_PAGES = 16

/** Estimated bytes of an override, without its strings. */
const RECORD_BYTES = 300

export class OverrideRecords {
  readonly #limiters = new Map<string, Map<string, Override>>()
  readonly #sweep = this.#all()
  /** The ends of the latest pages, where the next pages continue. */
  readonly #pages: { readonly after: string; readonly rest: Iterator<Override> }[] = []
  #numbers = 0
  /** Includes overrides that have ended, until {@link sweep} drops them. */
  size = 0
  /** The estimated memory use. */
  bytes = 0

  /** Returns the overrides in force, per part, if any part has one. */
  inForce(parts: readonly Part[], nowMs: number): (InForce | undefined)[] | undefined {
    if (this.size === 0) return undefined
    let inForce: (InForce | undefined)[] | undefined
    for (let i = 0; i < parts.length; i++) {
      const known = this.#of(parts[i]!)
      const own = known && inForceAt(known, nowMs)
      if (own === undefined) continue
      inForce ??= new Array<InForce | undefined>(parts.length).fill(undefined)
      inForce[i] = own
    }
    return inForce
  }

  has(part: Part): boolean {
    return this.size > 0 && this.#of(part) !== undefined
  }

  /** Checks the next `most` overrides and drops those that have ended. Returns how many it dropped. */
  sweep(byMs: number, most: number): number {
    const { size } = this
    for (let left = Math.min(most, size); left > 0 && this.size > 0; left--) {
      const [limiter, override] = this.#sweep.next().value
      if (inForceAt(override, byMs) === undefined) this.#set(limiter, override.key, undefined)
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
    const isInForce = inForceAt(override, nowMs) !== undefined
    this.#set(part.set.limiter, part.key, isInForce ? override : undefined)
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

  /** Yields the limiter's overrides with numbers above `after`. */
  *#from(limiter: string, after: string): Generator<Override> {
    for (const override of this.#limiters.get(limiter)?.values() ?? []) {
      if (override.number > Number(after)) yield override
    }
  }

  #of({ set, key }: Part): Override | undefined {
    return set.isOverridable ? this.#limiters.get(set.limiter)?.get(mapKey(key)) : undefined
  }

  #set(limiter: string, stored: string, override: Override | undefined): void {
    const key = mapKey(stored)
    const overrides = this.#limiters.get(limiter) ?? new Map<string, Override>()
    this.#count(overrides.get(key), -1)
    this.#count(override, 1)
    if (override === undefined) overrides.delete(key)
    else overrides.set(key, override)
    if (overrides.size === 0) this.#limiters.delete(limiter)
    else this.#limiters.set(limiter, overrides)
  }

  #count(override: Override | undefined, times: 1 | -1): void {
    if (override === undefined) return
    this.size += times
    this.bytes += times * (RECORD_BYTES + textsOf(override))
  }

  /** Yields all overrides in an endless cycle. Call `next` only if there are any. */
  *#all(): Generator<[string, Override], never> {
    for (;;) {
      for (const [limiter, overrides] of this.#limiters) {
        for (const override of overrides.values()) yield [limiter, override]
      }
    }
  }
}

function textsOf({ key, given = '', rule }: Override): number {
  return key.length + given.length + rule.length
}
