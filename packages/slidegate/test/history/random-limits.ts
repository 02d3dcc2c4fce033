import fc from 'fast-check'
import type { Declaration, KindName } from './declarations.ts'
import { VALUED } from './kind-traits.ts'
import type { Scale } from './scale.ts'

const PRECISIONS = [undefined, undefined, undefined, 1, 2, 7, 10, 50]

/** Time zones with unusual rules. Offsets of 30 and 45 minutes, a 30-minute summer time, a change at midnight, and a skipped day. */
const TIME_ZONES = [
  'UTC',
  'Europe/Berlin',
  'America/New_York',
  'Asia/Kolkata',
  'Asia/Kathmandu',
  'Australia/Lord_Howe',
  'America/Santiago',
  'Pacific/Apia',
]

function declarationOf(kind: KindName, scale: Scale): fc.Arbitrary<Declaration> {
  const numbers = {
    limit: fc.integer({ min: 1, max: scale.limit }),
    shadow: scale.oneLog || scale.noShadows ? fc.constant(false) : fc.constantFrom(false, false, false, true),
  }
  const shortest = scale.shortestMs ?? 10
  const window = fc.integer({ min: shortest, max: scale.windowMs })
  // A few windows come often, because limiters or limits that share a log are the interesting case.
  const few = fc.oneof(fc.constantFrom(shortest, scale.windowMs), window)
  switch (kind) {
    case 'sliding': {
      const precision = scale.oneLog ? fc.constant(undefined) : fc.constantFrom(...PRECISIONS)
      return fc.record({ kind: fc.constant(kind), precision, window, ...numbers })
    }
    case 'calendar': {
      const unit = fc.constantFrom('hour' as const, 'day' as const, 'week' as const, 'month' as const)
      const timeZone = fc.constantFrom(...TIME_ZONES)
      return fc.record({ kind: fc.constant(kind), unit, timeZone, ...numbers })
    }
    case 'bucket': {
      const refill = fc.oneof(
        fc.integer({ min: 1, max: Math.min(2 * scale.limit, 2 ** 40) }),
        fc.integer({ min: 1, max: 1000 }),
      )
      const any = fc.record({ kind: fc.constant(kind), refill, window: few, ...numbers })
      return any.map((bucket) => ({ ...bucket, limit: Math.min(bucket.limit, mostTokens(bucket)) }))
    }
    default:
      return fc.record({ kind: fc.constant(kind), window: few, ...numbers })
  }
}

/** Returns the highest capacity with exact sums that refills within 366 days. */
function mostTokens({ refill, window }: { readonly refill: number; readonly window: number }): number {
  return Math.floor(Math.min(2 ** 52 / window, (366 * 86_400_000 * refill) / window - 1))
}

export function declarationsOf(scale: Scale): fc.Arbitrary<Declaration[]> {
  const kinds = scale.kinds.filter((kind) => !VALUED.includes(kind))
  const values = declarationOf('distinct', scale).map((declaration) => [declaration])
  if (kinds.length === 0) return values
  const one = fc.constantFrom(...kinds).chain((kind) => declarationOf(kind, scale))
  const some = fc.array(one, { minLength: 1, maxLength: scale.limits ?? 3 })
  if (kinds.length === scale.kinds.length) return some
  return fc.oneof({ weight: kinds.length, arbitrary: some }, { weight: 1, arbitrary: values })
}
