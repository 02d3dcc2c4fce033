import { calendarWindow } from '../../src/calendar.ts'
import {
  concurrency,
  distinct,
  fixedWindow,
  type Limit,
  slidingCounter,
  slidingWindow,
  tokenBucket,
} from '../../src/index.ts'
import { calendarWindows, type Unit } from './models/calendar.ts'
import { RequestsModel, ValuesModel } from './models/entries.ts'
import { epochWindows, FixedModel, firstHitWindows } from './models/fixed.ts'
import type { LogModel } from './models/log-model.ts'
import { SlidingModel } from './models/sliding.ts'
import { SlidingCounterModel } from './models/sliding-counter.ts'
import { TokenBucketModel } from './models/token-bucket.ts'
import type { Ruled } from './oracle.ts'

interface Numbers {
  readonly limit: number
  readonly window: number
  readonly shadow: boolean
}

/** A limit as a user would declare it, with the name of its kind. */
export type Declaration =
  | ({ readonly kind: 'sliding'; readonly precision: number | undefined } & Numbers)
  | ({
      readonly kind: 'fixed' | 'firstHit' | 'counter' | 'zset' | 'stream' | 'concurrency' | 'distinct'
    } & Numbers)
  | ({ readonly kind: 'calendar'; readonly unit: Unit; readonly timeZone: string } & Omit<Numbers, 'window'>)
  | ({ readonly kind: 'bucket'; readonly refill: number } & Numbers)

export type KindName = Declaration['kind']

export const KINDS: readonly KindName[] = [
  'sliding',
  'zset',
  'stream',
  'fixed',
  'calendar',
  'firstHit',
  'counter',
  'bucket',
  'concurrency',
  'distinct',
]

/** Returns a limiter's limits in two forms: for the library and for the oracle. */
export function ruledBy(declarations: readonly Declaration[]): Ruled[] {
  return declarations.map((declaration, i) => ({
    kind: declaration.kind,
    limit: limitOf(declaration, `limit${i}`),
    model: () => modelOf(declaration),
    place: declarations.slice(0, i).filter((other) => areAlike(other, declaration)).length,
  }))
}

/** Whether two token buckets would share a log if buckets ever shared one. */
function areAlike(a: Declaration, b: Declaration): boolean {
  return a.kind === 'bucket' && b.kind === 'bucket' && a.window === b.window && !a.shadow && !b.shadow
}

function limitOf(declaration: Declaration, name: string): Limit {
  const { limit, shadow } = declaration
  const options = { name, limit, shadow }
  if (declaration.kind === 'calendar') {
    return calendarWindow({ ...options, unit: declaration.unit, timeZone: declaration.timeZone })
  }
  const { window } = declaration
  switch (declaration.kind) {
    case 'sliding': {
      const { precision } = declaration
      return slidingWindow({ ...options, window, precision: precision && Math.min(precision, window) })
    }
    case 'zset':
    case 'stream':
      return slidingWindow({ ...options, window, log: declaration.kind })
    case 'fixed':
      return fixedWindow({ ...options, window })
    case 'firstHit':
      return fixedWindow({ ...options, window, align: 'first-hit' })
    case 'bucket':
      return tokenBucket({ name, shadow, capacity: limit, refill: declaration.refill, interval: window })
    case 'counter':
      return slidingCounter({ ...options, window })
    case 'concurrency':
      return concurrency({ ...options, ttl: window })
    case 'distinct':
      return distinct({ ...options, window })
  }
}

function modelOf(declaration: Declaration): LogModel {
  if (declaration.kind === 'calendar') {
    return new FixedModel(calendarWindows(declaration.unit, declaration.timeZone))
  }
  const { window } = declaration
  switch (declaration.kind) {
    case 'sliding':
      return new SlidingModel(Math.min(declaration.precision ?? 1, window))
    case 'zset':
      return new RequestsModel(window, 'request')
    case 'stream':
      return new RequestsModel(window, 'nameless')
    case 'fixed':
      return new FixedModel(epochWindows(window))
    case 'firstHit':
      return new FixedModel(firstHitWindows(window))
    case 'bucket':
      return new TokenBucketModel(window)
    case 'counter':
      return new SlidingCounterModel(window)
    case 'concurrency':
      return new RequestsModel(window, 'holder')
    case 'distinct':
      return new ValuesModel(window)
  }
}
