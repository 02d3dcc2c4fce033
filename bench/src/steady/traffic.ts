/** Steady requests per key, and the charges that its windows have at the start. */
export interface Traffic {
  readonly outcome: 'admitted' | 'denied'
  /** The longest window. */
  readonly limit: number
  readonly windowMs: number
  /** Further windows of the limiter. */
  readonly shorter: readonly { readonly limit: number; readonly windowMs: number }[]
  /** Past charges: the time between them, their number, and the units of each. */
  readonly apartMs: number
  readonly charges: number
  readonly cost: number
  readonly keys: number
  /** Requests per turn. Default: `REQUESTS`. */
  readonly requests?: number
  /** Default: `IN_FLIGHT`. */
  readonly inFlight?: number
}

/** Steady traffic has one request per key in this time, or a few simultaneous ones. */
export const EVERY_MS = 1000

/** Requests per turn. */
export const REQUESTS = 5120

export const IN_FLIGHT = 1024

/** Returns the spare room in steady traffic, which lets a request be a little early. */
const spare = (limit: number) => Math.max(1.5, limit / 20)

/** Returns traffic on nearly full windows. Each request is admitted just after the oldest one leaves. */
export function steady(limit: number, shorterLimits: readonly number[] = []): Traffic {
  return {
    outcome: 'admitted',
    limit,
    windowMs: windowOf(limit),
    shorter: shorterLimits.map((limit) => ({ limit, windowMs: windowOf(limit) })),
    apartMs: EVERY_MS,
    charges: limit - 1,
    cost: 1,
    keys: REQUESTS,
  }
}

/** Returns the window in which one request per `EVERY_MS` adds up to the limit. */
function windowOf(limit: number): number {
  return (limit - spare(limit)) * EVERY_MS
}

/** Returns traffic in which every key stays at its limit. */
export function denied(limit: number): Traffic {
  return {
    outcome: 'denied',
    limit,
    windowMs: 3_600_000,
    shorter: [],
    apartMs: 10,
    charges: limit,
    cost: 1,
    keys: REQUESTS,
  }
}

const HOUR_MS = 3_600_000

/** The step of a one-hour window. */
const GRAIN_MS = 100

/**
 * Returns traffic on a large limit per hour. 95% of the limit is charged at even intervals.
 *
 * The log has one charge per step of the window, or one per unit if there are fewer units. During a run, slightly more leaves the
 * window than enters it.
 */
export function steadyHour(limit: number): Traffic {
  const units = Math.floor(limit * 0.95)
  const charges = Math.min(units, HOUR_MS / GRAIN_MS)
  return {
    outcome: 'admitted',
    limit,
    windowMs: HOUR_MS,
    shorter: [],
    apartMs: HOUR_MS / charges,
    charges,
    cost: Math.floor(units / charges),
    // Logs are large, so there are few keys. There are more keys than requests in flight, so that no two of these requests share
    // a key.
    keys: REQUESTS / 4,
  }
}

/** Returns traffic on a full window. All charges are in its newer half, at most one per step. */
export function fullFor(limit: number, windowMs: number, grainMs: number): Traffic {
  const charges = Math.min(limit, Math.floor(windowMs / 2 / grainMs))
  return {
    outcome: 'denied',
    limit: Math.floor(limit / charges) * charges,
    windowMs,
    shorter: [],
    apartMs: windowMs / 2 / charges,
    charges,
    cost: Math.floor(limit / charges),
    keys: REQUESTS / 4,
  }
}

/** Returns the times of the past charges. */
export function timesOf({ charges, apartMs }: Traffic): number[] {
  const startMs = Date.now() - charges * apartMs
  return Array.from({ length: charges }, (_, i) => Math.floor(startMs + i * apartMs))
}

/** The value of the newest past request. */
export const KNOWN_VALUE = 'known'

/** Returns a past request's name and value. */
export function nameOf({ charges }: Traffic, number: number): string {
  return number === charges - 1 ? KNOWN_VALUE : `past-${number}`
}

/** Returns the same traffic, one request at a time, with fewer keys. */
export function oneAtATime(traffic: Traffic): Traffic {
  return { ...traffic, keys: REQUESTS / 8, requests: REQUESTS / 8, inFlight: 1 }
}
