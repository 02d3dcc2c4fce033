/** Requests of each key at a steady pace, and the past that its windows hold when they begin. */
export interface Traffic {
  readonly outcome: 'admitted' | 'denied'
  /** Units in a window, and its length; the longest of several windows. */
  readonly limit: number
  readonly windowMs: number
  /** Further windows of the same limiter. */
  readonly shorter: readonly { readonly limit: number; readonly windowMs: number }[]
  /** Time between the charges of the past, how many there are, and the units of each. */
  readonly apartMs: number
  readonly charges: number
  readonly cost: number
  readonly keys: number
  /** Requests of one turn; `REQUESTS`, where it is left out. */
  readonly requests?: number
  /** Of them at a time; `IN_FLIGHT`, where it is left out. */
  readonly inFlight?: number
}

/** Steady traffic asks for each key once in this time, or a few times at once. */
export const EVERY_MS = 1000

/** Requests of one turn. */
export const REQUESTS = 5120

export const IN_FLIGHT = 1024

/** Requests that would still fit in steady traffic, so that one that comes a little early is admitted too. */
const spare = (limit: number) => Math.max(1.5, limit / 20)

/** Each request that comes is admitted just as the oldest in its windows has left; these are nearly full. */
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

/** Of a limit that is used up by one request in each `EVERY_MS`. */
function windowOf(limit: number): number {
  return (limit - spare(limit)) * EVERY_MS
}

/** Every key is at its limit, and for long. */
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

/** Stamps of a log that the library keeps for an hour. */
const GRAIN_MS = 100

/**
 * A large limit in an hour, the window 95% full of requests that came evenly: as many charges as the log can tell
 * apart, or the limit has. More leaves it in the course of a run than comes, but little of the whole.
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
    // Their logs are large. More keys than requests in flight, so that no two of these are of one key.
    keys: REQUESTS / 4,
  }
}

/** A window that is full of what came in its newer half, as many charges as its log can tell apart. */
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

/** When the past was charged. */
export function timesOf({ charges, apartMs }: Traffic): number[] {
  const startMs = Date.now() - charges * apartMs
  return Array.from({ length: charges }, (_, i) => Math.floor(startMs + i * apartMs))
}

/** What the newest request of the past has brought, where values are counted. */
export const KNOWN_VALUE = 'known'

/** What a request of the past is called, and has brought. */
export function nameOf({ charges }: Traffic, number: number): string {
  return number === charges - 1 ? KNOWN_VALUE : `past-${number}`
}

/** The same, one request at a time, and so of fewer keys. */
export function oneAtATime(traffic: Traffic): Traffic {
  return { ...traffic, keys: REQUESTS / 8, requests: REQUESTS / 8, inFlight: 1 }
}
