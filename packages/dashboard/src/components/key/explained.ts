import type { LimitTold, OverrideTold } from '../../told.ts'

/** What /v1/explain answers, with charges. Times are by the clock of the store; `null` is for ever. */
export interface Explained {
  readonly atMs: number
  readonly allowed: boolean
  readonly cost: number
  readonly deniedBy: readonly string[]
  readonly retryAfterMs: number | null
  /** 0: not blocked; `null`: until it is unblocked. */
  readonly blockedMs: number | null
  readonly limits: readonly LimitExplained[]
  readonly bans: readonly BanExplained[]
  readonly overrides: readonly OverrideTold[]
}

export interface LimitExplained {
  readonly name: string
  readonly limit: number
  readonly windowMs: number
  readonly precisionMs: number
  readonly shadow: boolean
  readonly allowed: boolean
  readonly used: number
  readonly remaining: number
  readonly resetAfterMs: number | null
  readonly frees: readonly { readonly afterMs: number; readonly units: number }[]
  /** Only of kinds that keep the times of charges. */
  readonly charges?: readonly ChargeTold[]
  readonly chargedElsewhere?: number
  readonly declared?: LimitTold
}

export interface ChargeTold {
  readonly atMs: number
  readonly units: number
}

interface BanExplained {
  readonly level: number
  readonly denials: number
}

/** For how long after its stamp a charge counts: until the last of its step has left the window. */
export function countsMs({ windowMs, precisionMs }: LimitExplained): number {
  return windowMs + Math.max(0, precisionMs - 1)
}

/** Whose page it is. */
export interface OneKey {
  readonly limiter: string
  readonly key: string
  /** Of limiters with dimensions. */
  readonly dimension: string | undefined
}

/** The key as the service is told it. */
export function keyOf({ key, dimension }: OneKey): string | Readonly<Record<string, string>> {
  return dimension === undefined ? key : { [dimension]: key }
}

/** The name that the configuration has for a limit: in decisions it begins with the dimension. */
export function declaredName({ dimension }: OneKey, { name }: LimitExplained): string {
  return dimension === undefined ? name : name.slice(dimension.length + 1)
}
