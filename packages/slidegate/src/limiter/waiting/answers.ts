import { limitsInForce, limitsOf } from '../../stores/outcome.ts'
import type { ConsumeOp, ConsumeOutcome, Part } from '../../stores/store.ts'

/** An op and its outcome. */
export interface Answer {
  readonly op: ConsumeOp
  readonly outcome: ConsumeOutcome
}

/** Milliseconds after which a request that was denied may be asked for again; `Infinity` where it never may. */
export function waitIn({ op, outcome }: Answer): number {
  // A store that does not answer may have no idea either.
  let waitMs = Math.max(1, outcome.waitMs, outcome.ban?.ms ?? 0)
  limitsInForce(op, outcome).forEach(({ shadow }, i) => {
    if (!shadow) waitMs = Math.max(waitMs, outcome.limits[3 * i + 1]!)
  })
  return waitMs
}

/** Whether several requests can be asked for in one op: not where logs know each by a name. */
export function areJoined(parts: readonly Part[]): boolean {
  return parts.every(({ set }) => set.logs.every(({ kind, role }) => role !== 'count' || !kind.entries))
}

/** Whether two requests are held to the same limits of the same keys. */
export function areAlike(some: readonly Part[], others: readonly Part[]): boolean {
  if (some.length !== others.length) return false
  return some.every(({ key, set }, i) => key === others[i]!.key && set === others[i]!.set)
}

/** Whether some of what is used may be released at any time. */
export function areHeld(parts: readonly Part[]): boolean {
  return limitsOf(parts).some(({ kind, shadow }) => !shadow && kind.entries?.are === 'holder')
}

/** Units per millisecond that the tightest limit admits in the long run; `Infinity` where none says so. */
export function rateOf(parts: readonly Part[]): number {
  const rated = limitsOf(parts).filter(({ kind, shadow }) => !shadow && kind.entries?.are !== 'holder')
  return Math.min(...rated.map(({ limit, windowMs }) => limit / windowMs))
}
