// Parses the times in log lines.

// Well below 2^47 ms, the latest time that a limiter can store, but later than any time in a real log.
const LATEST_MS = Date.UTC(3000, 0, 1) - 1

/** Smaller numbers are seconds since the epoch (until the year 5138). Larger ones are milliseconds (since 1973). */
const FIRST_AS_MILLISECONDS = 100_000_000_000

const MONTHS = ['Jan', 'Feb', 'Mar', 'Apr', 'May', 'Jun', 'Jul', 'Aug', 'Sep', 'Oct', 'Nov', 'Dec']
const ACCESS_LOG_TIME = /^(\d\d)\/(\w{3})\/(\d{4}):(\d\d):(\d\d):(\d\d) ([+-]\d{4})$/
const ISO_TIME =
  /^(\d{4})-(\d\d)-(\d\d)(?:[T ](\d\d):(\d\d)(?::(\d\d)(?:[.,](\d{1,9}))?)?(Z|[+-]\d\d:?\d\d)?)?$/i
const DECIMAL = /^\d{1,15}(?:\.\d{1,9})?$/

/** Parses `17/May/2015:10:05:03 +0000` to epoch milliseconds. Times must be in the years 1970 to 2999. */
export function parseAccessLogTime(text: string): number | undefined {
  const match = ACCESS_LOG_TIME.exec(text)
  if (match === null) return undefined
  const [, day, month, year, hour, minute, second, zone] = match
  return epochMs([year, MONTHS.indexOf(month!) + 1, day, hour, minute, second].map(Number), 0, zone!)
}

/**
 * Parses the time in a field of a JSON line.
 *
 * The time is ISO 8601 text (UTC if it has no zone), or a number of seconds or milliseconds since the epoch.
 */
export function parseJsonTime(value: unknown): number | undefined {
  if (typeof value === 'number') return parseEpoch(value)
  if (typeof value !== 'string') return undefined
  if (DECIMAL.test(value)) return parseEpoch(Number(value))
  const match = ISO_TIME.exec(value)
  if (match === null) return undefined
  const [, year, month, day, hour = '0', minute = '0', second = '0', fraction = '0', zone = 'Z'] = match
  const ms = Math.floor(Number(`0.${fraction}`) * 1000)
  return epochMs([year, month, day, hour, minute, second].map(Number), ms, zone)
}

function parseEpoch(time: number): number | undefined {
  return inRange(Math.round(time < FIRST_AS_MILLISECONDS ? time * 1000 : time))
}

function epochMs(fields: readonly number[], ms: number, zone: string): number | undefined {
  const [year = 0, month = 0, day = 0, hour = 0, minute = 0, second = 0] = fields
  const isDate =
    month >= 1 && month <= 12 && day >= 1 && day <= new Date(Date.UTC(year, month, 0)).getUTCDate()
  // A leap second counts as the first second of the next minute.
  if (!isDate || hour > 23 || minute > 59 || second > 60) return undefined
  const offsetMinutes = zoneMinutes(zone)
  if (offsetMinutes === undefined) return undefined
  return inRange(Date.UTC(year, month - 1, day, hour, minute, second, ms) - offsetMinutes * 60_000)
}

/** Minutes ahead of UTC: `+0130` and `+01:30` are 90. */
function zoneMinutes(zone: string): number | undefined {
  if (zone.length === 1) return 0
  const hours = Number(zone.slice(1, 3))
  const minutes = Number(zone.slice(-2))
  if (hours > 23 || minutes > 59) return undefined
  return (zone.startsWith('-') ? -1 : 1) * (hours * 60 + minutes)
}

function inRange(ms: number): number | undefined {
  return ms > 0 && ms <= LATEST_MS ? ms : undefined
}
