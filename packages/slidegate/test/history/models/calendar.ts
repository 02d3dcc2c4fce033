import type { Window, WindowAt } from './fixed.ts'

export type Unit = 'hour' | 'day' | 'week' | 'month'

const HOUR_MS = 3_600_000

interface Calendar {
  readonly label: (ms: number) => string
  readonly windows: Window[]
}

const calendars = new Map<string, Calendar>()

/** Windows of a calendar in this time zone. */
export function calendarWindows(unit: Unit, timeZone: string): WindowAt {
  const name = `${unit} ${timeZone}`
  const calendar = calendars.get(name) ?? { label: labelOf(unit, timeZone), windows: [] }
  calendars.set(name, calendar)
  const { label, windows } = calendar
  return (ms) => {
    const known = windows.find(({ startMs, endMs }) => startMs <= ms && ms < endMs)
    if (known !== undefined) return known
    const window = { startMs: edge(label, ms, -1), endMs: edge(label, ms, 1) }
    windows.push(window)
    return window
  }
}

/** Returns a label for the window of a moment. It stays the same from one edge to the next. */
function labelOf(unit: Unit, timeZone: string): (ms: number) => string {
  const format = new Intl.DateTimeFormat('en-CA', {
    timeZone,
    calendar: 'iso8601',
    hourCycle: 'h23',
    year: 'numeric',
    month: '2-digit',
    day: '2-digit',
    hour: '2-digit',
    timeZoneName: 'longOffset',
  })
  return (ms) => {
    const parts = new Map(format.formatToParts(ms).map(({ type, value }) => [type, value]))
    const [year, month, day] = [parts.get('year')!, parts.get('month')!, parts.get('day')!]
    if (unit === 'month') return `${year}-${month}`
    if (unit === 'day') return `${year}-${month}-${day}`
    // When the clock goes back, the repeated hour is another window.
    if (unit === 'hour') return `${year}-${month}-${day} ${parts.get('hour')} ${parts.get('timeZoneName')}`
    const daysSinceMonday =
      Math.floor(Date.UTC(Number(year), Number(month) - 1, Number(day)) / 86_400_000) + 3
    return String(Math.floor(daysSinceMonday / 7))
  }
}

/** Returns the first moment with this label, or the first one after it. Searches with growing steps, then by bisection. */
function edge(label: (ms: number) => string, ms: number, direction: 1 | -1): number {
  const wanted = label(ms)
  let inside = ms
  let step = direction * HOUR_MS
  while (label(inside + step) === wanted) {
    inside += step
    step *= 2
  }
  let outside = inside + step
  while (Math.abs(outside - inside) > 1) {
    const middle = Math.floor((inside + outside) / 2)
    if (label(middle) === wanted) inside = middle
    else outside = middle
  }
  return direction === 1 ? outside : inside
}
