import fc from 'fast-check'
import type { Decision, LimitDecision } from '../../src/decision.ts'
import type { Header } from '../../src/http/headers.ts'

const AT_MS = 1_700_000_000_250

/** Returns the decision of one limit, which allows the request by default. */
export function limit(name: string, changes: Partial<LimitDecision> = {}): LimitDecision {
  return {
    name,
    limit: 100,
    windowMs: 60_000,
    precisionMs: 1,
    shadow: false,
    allowed: true,
    remaining: 99,
    retryAfterMs: 0,
    resetAfterMs: 60_000,
    ...changes,
  }
}

/** Returns the decision of these limits. */
export function decide(...limits: readonly LimitDecision[]): Decision {
  const enforced = limits.filter(({ shadow }) => !shadow)
  const denying = enforced.filter(({ allowed }) => !allowed)
  return {
    allowed: denying.length === 0,
    cost: 1,
    remaining: Math.min(...enforced.map(({ remaining }) => remaining)),
    retryAfterMs: Math.max(0, ...denying.map(({ retryAfterMs }) => retryAfterMs)),
    resetAfterMs: Math.max(0, ...enforced.map(({ resetAfterMs }) => resetAfterMs)),
    deniedBy: denying.map(({ name }) => name),
    limits,
    source: 'store',
    atMs: AT_MS,
  }
}

/** Generates decisions of enforced limits. */
export function decisions(): fc.Arbitrary<Decision> {
  const units = fc.integer({ min: 1, max: 2 ** 40 })
  const waits = fc.integer({ min: 1, max: 366 * 86_400_000 })
  const denial = fc.oneof(
    { weight: 9, arbitrary: waits },
    { weight: 1, arbitrary: fc.constant(Number.POSITIVE_INFINITY) },
  )
  const one = fc.record({
    name: fc.stringMatching(/^[A-Za-z0-9._-]{1,64}$/),
    limit: units,
    windowMs: fc.integer({ min: 10, max: 366 * 86_400_000 }),
    remaining: fc.integer({ min: 0, max: 2 ** 40 }),
    resetAfterMs: waits,
    denies: fc.option(denial, { freq: 3 }),
  })
  return fc.uniqueArray(one, { selector: ({ name }) => name, minLength: 1, maxLength: 5 }).map((drawn) => {
    const limits = drawn.map(({ denies, ...changes }) =>
      limit(changes.name, { ...changes, allowed: denies === null, retryAfterMs: denies ?? 0 }),
    )
    return decide(...limits)
  })
}

/** Returns headers by name. */
export function fields(headers: readonly Header[]): Record<string, string> {
  return Object.fromEntries(headers.map(({ name, value }) => [name, value]))
}
