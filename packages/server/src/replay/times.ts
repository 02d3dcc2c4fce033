const MINUTE_MS = 60_000
const DAY_MS = 86_400_000

/** When a step of so long begins, in UTC, as exactly as steps of that length need. */
export function timeIn(ms: number, stepMs: number): string {
  const [date = '', clock = ''] = new Date(ms).toISOString().split(/[TZ]/)
  if (stepMs >= DAY_MS) return date
  const length = stepMs >= MINUTE_MS ? 'hh:mm'.length : stepMs >= 1000 ? 'hh:mm:ss'.length : undefined
  return `${date} ${clock.slice(0, length)}`
}
