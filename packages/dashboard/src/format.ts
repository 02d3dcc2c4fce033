/** Numbers, durations and times, as the page writes them. What is not known is a dash. */

export const NONE = '–'

const whole = new Intl.NumberFormat('en', { maximumFractionDigits: 0 })
const precise = new Intl.NumberFormat('en', { maximumSignificantDigits: 3 })
const short = new Intl.NumberFormat('en', { notation: 'compact', maximumFractionDigits: 1 })

/** 1,234,567 */
export function count(value: number | null | undefined): string {
  return isNumber(value) ? whole.format(value) : NONE
}

/** 1,234 or 1.2M: where there is little room. */
export function compact(value: number | null | undefined): string {
  if (!isNumber(value)) return NONE
  return Math.abs(value) < 10_000 ? decimal(value) : short.format(value)
}

/** Whole from 100, three digits below. */
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

/** A part of a whole; of nothing there is none. */
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

/** 90,000 -> 1 min 30 s: two units at most, of what is below a millisecond its microseconds. */
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

/** The same, rounded up to whole seconds where there are some. */
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

/** 14:03:59, of this machine's time zone. */
export function timeOfDay(atMs: number): string {
  return clock.format(atMs)
}

/** 22 Nov 2026, 14:03:59 */
export function dateTime(atMs: number): string {
  return `${date.format(atMs)}, ${clock.format(atMs)}`
}

function isNumber(value: number | null | undefined): value is number {
  return typeof value === 'number' && Number.isFinite(value)
}
