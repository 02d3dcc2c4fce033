/** Computes local time with `Intl`, as an independent check of the calendar. */

const formats = new Map<string, Intl.DateTimeFormat>()

/** Returns local time as epoch milliseconds, as if it were UTC. */
export function localMs(timeZone: string, ms: number): number {
  let format = formats.get(timeZone)
  if (format === undefined) {
    const digits = 'numeric' as const
    format = new Intl.DateTimeFormat('en-u-hc-h23', {
      timeZone,
      ...{
        era: 'short',
        year: digits,
        month: digits,
        day: digits,
        hour: digits,
        minute: digits,
        second: digits,
      },
    })
    formats.set(timeZone, format)
  }
  const parts = new Map(format.formatToParts(ms).map(({ type, value }) => [type, Number(value)]))
  const part = (type: Intl.DateTimeFormatPartTypes) => parts.get(type)!
  const seconds = Date.UTC(
    part('year'),
    part('month') - 1,
    part('day'),
    part('hour'),
    part('minute'),
    part('second'),
  )
  return seconds + (((ms % 1000) + 1000) % 1000)
}

/** Returns how far local time is ahead of UTC. */
export function offsetAt(timeZone: string, ms: number): number {
  return localMs(timeZone, ms) - ms
}

/** Numbers local days, weeks (from Monday) or months consecutively. */
export function ordinal(unit: 'day' | 'week' | 'month', timeZone: string, ms: number): number {
  const local = new Date(localMs(timeZone, ms))
  const day = Math.floor(local.getTime() / 86_400_000)
  if (unit === 'day') return day
  // Day 0 was a Thursday.
  return unit === 'week' ? Math.floor((day + 3) / 7) : 12 * local.getUTCFullYear() + local.getUTCMonth()
}

/** Returns the next change of the local clock, if it comes within this time. */
export function nextSetting(timeZone: string, ms: number, withinMs: number): number | undefined {
  const stepMs = 5 * 86_400_000
  for (let fromMs = ms; fromMs < ms + withinMs; fromMs += stepMs) {
    let low = fromMs
    let high = fromMs + stepMs
    const offset = offsetAt(timeZone, low)
    if (offsetAt(timeZone, high) === offset) continue
    while (high - low > 1) {
      const middle = Math.floor((low + high) / 2)
      if (offsetAt(timeZone, middle) === offset) low = middle
      else high = middle
    }
    return high
  }
  return undefined
}
