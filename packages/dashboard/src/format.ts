// Formats numbers, durations, times, limits and overrides as text. A missing value becomes a dash.

import type { DeclaredLimit, Override } from './api-types.ts'

export const NONE = '–'

const whole = new Intl.NumberFormat('en', { maximumFractionDigits: 0 })
const precise = new Intl.NumberFormat('en', { maximumSignificantDigits: 3 })
const short = new Intl.NumberFormat('en', { notation: 'compact', maximumFractionDigits: 1 })

/** 1,234,567 */
export function count(value: number | null | undefined): string {
  return isNumber(value) ? whole.format(value) : NONE
}

/** 1,234 or 1.2M, to save space. */
export function compact(value: number | null | undefined): string {
  if (!isNumber(value)) return NONE
  return Math.abs(value) < 10_000 ? decimal(value) : short.format(value)
}

/** Rounds numbers of at least 100 to whole numbers. Smaller ones get three significant digits. */
export function decimal(value: number | null | undefined): string {
  if (!isNumber(value)) return NONE
  return Math.abs(value) >= 100 ? whole.format(value) : precise.format(value)
}

/** 12.5/s */
export function rate(perSecond: number | null | undefined): string {
  return isNumber(perSecond) ? `${compact(perSecond)}/s` : NONE
}

/** 0.25 -> 25% */
export function share(ratio: number | null | undefined): string {
  if (!isNumber(ratio)) return NONE
  const percent = ratio * 100
  if (percent > 0 && percent < 0.1) return '<0.1%'
  if (percent < 100 && percent > 99.9) return '>99.9%'
  return `${percent < 10 ? Math.round(percent * 10) / 10 : Math.round(percent)}%`
}

/** Divides a part by the whole. Returns null if the whole is 0. */
export function ratio(part: number, all: number): number | null {
  return all > 0 ? part / all : null
}

const STEPS = [
  ['d', 86_400_000],
  ['h', 3_600_000],
  ['min', 60_000],
  ['s', 1000],
  ['ms', 1],
] as const

/** 90,000 -> 1 min 30 s. At most two units. Durations below a millisecond are in microseconds. */
export function duration(ms: number | null | undefined): string {
  if (!isNumber(ms)) return NONE
  if (ms === 0) return '0 ms'
  if (ms < 1) return `${precise.format(ms * 1000)} µs`
  if (ms < 100) return `${precise.format(ms)} ms`
  if (ms < 60_000 && ms >= 1000) return `${precise.format(ms / 1000)} s`
  let rest = Math.round(ms)
  const parts: string[] = []
  for (const [unit, size] of STEPS) {
    const units = Math.floor(rest / size)
    if (units === 0) {
      if (parts.length > 0) break
      continue
    }
    parts.push(`${units} ${unit}`)
    rest -= units * size
    if (parts.length === 2) break
  }
  return parts.join(' ')
}

/** Like {@link duration}, but durations of at least a second are rounded up to whole seconds. */
export function roundDuration(ms: number): string {
  return duration(ms < 1000 ? Math.ceil(ms) : Math.ceil(ms / 1000) * 1000)
}

/** 12.3 MiB */
export function bytes(value: number | null | undefined): string {
  if (!isNumber(value)) return NONE
  const units = ['B', 'KiB', 'MiB', 'GiB', 'TiB']
  let size = value
  let unit = 0
  while (size >= 1024 && unit < units.length - 1) {
    size /= 1024
    unit++
  }
  return `${decimal(size)} ${units[unit]}`
}

const clock = new Intl.DateTimeFormat('en-GB', { hour: '2-digit', minute: '2-digit', second: '2-digit' })
const date = new Intl.DateTimeFormat('en-GB', { year: 'numeric', month: 'short', day: 'numeric' })

/** 14:03:59, in the browser's time zone. */
export function timeOfDay(atMs: number): string {
  return clock.format(atMs)
}

const minute = new Intl.DateTimeFormat('en-GB', { hour: '2-digit', minute: '2-digit' })
const weekday = new Intl.DateTimeFormat('en-GB', { weekday: 'short', hour: '2-digit', minute: '2-digit' })
const day = new Intl.DateTimeFormat('en-GB', { weekday: 'short', day: 'numeric', month: 'short' })

/** A time on an axis: `14:03:59`, `14:03` or `Fri, 14:00`, depending on the length of the chart's steps. */
export function axisTime(atMs: number, stepSeconds: number): string {
  if (stepSeconds < 60) return clock.format(atMs)
  return (stepSeconds < 3600 ? minute : weekday).format(atMs)
}

/** The start of a step: `14:03:59`, `14:03` or `Fri, 27 Nov, 14:00`. */
export function stepTime(atMs: number, stepSeconds: number): string {
  return stepSeconds < 3600 ? axisTime(atMs, stepSeconds) : `${day.format(atMs)}, ${minute.format(atMs)}`
}

/** 22 Nov 2026, 14:03:59 */
export function dateTime(atMs: number): string {
  return `${date.format(atMs)}, ${clock.format(atMs)}`
}

/** 2026-01-05 09:39:59, in UTC, as in logs. */
export function utc(atMs: number): string {
  return new Date(atMs).toISOString().slice(0, 19).replace('T', ' ')
}

/** An override in words, without its expiry: `minute 300 per 1 min, hourly 5000`. */
export function ruleInWords({ limits = {}, exempt, unused = [] }: Override): string {
  if (exempt) return 'exempt: limits count but never deny'
  return Object.entries(limits)
    .map(([name, { limit, windowMs, capacity, refill }]) =>
      [
        name,
        limit,
        windowMs !== undefined && `per ${duration(windowMs)}`,
        capacity !== undefined && `capacity ${capacity}`,
        refill !== undefined && `refill ${refill}`,
        unused.includes(name) && '(unused)',
      ]
        .filter((word) => word !== undefined && word !== false && word !== '')
        .join(' '),
    )
    .join(', ')
}

export function blockInWords(ms: number | null): string {
  return ms === null ? 'blocked until unblocked' : `blocked for ${roundDuration(ms)}`
}

/** A limit in words: `100 in any 1 min`. */
export function limitInWords(limit: DeclaredLimit): string {
  const { kind, limit: most, window, capacity, refill, interval, ttl, unit, approximate } = limit
  switch (kind) {
    case 'slidingWindow':
      return `${most} in any ${spanOf(window)}`
    case 'fixedWindow':
      return `${most} per ${spanOf(window)}, fixed window`
    case 'calendarWindow':
      return `${most} per ${unit}, calendar window`
    case 'slidingCounter':
      return `about ${most} in any ${spanOf(window)}`
    case 'tokenBucket':
      return `bucket of ${capacity}, refilled by ${refill} per ${spanOf(interval)}`
    case 'concurrency':
      return `${most} concurrent, each for up to ${spanOf(ttl)}`
    case 'distinct':
      return `${approximate ? 'about ' : ''}${most} distinct values in any ${spanOf(window)}`
    default:
      return kind
  }
}

function spanOf(span: unknown): string {
  if (typeof span === 'number') return duration(span)
  const [, count, unit] = /^(\d+)(ms|s|m|h|d)$/.exec(String(span)) ?? []
  return unit === undefined ? String(span) : `${count} ${unit === 'm' ? 'min' : unit}`
}

function isNumber(value: number | null | undefined): value is number {
  return typeof value === 'number' && Number.isFinite(value)
}
