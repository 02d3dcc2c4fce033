import { alignColumns, formatCount } from '../text.ts'
import type { OverTime } from './over-time.ts'
import { timeIn } from './times.ts'

const ROWS = 24
const WIDTH = 40

/** How many requests came when, and what became of them: a row for each step of time. */
export function formatChart(overTime: OverTime): string[] {
  const { fromMs, stepMs, steps } = overTime.read(ROWS)
  if (steps.length === 0) return []
  const most = Math.max(...steps.map(({ admitted, denied }) => admitted + denied))
  const rows = steps.map(({ admitted, denied }, i) => {
    const whole = lengthOf(admitted + denied, most)
    // What was denied is to be seen, however little it is.
    const refused = denied === 0 ? 0 : Math.max(1, Math.round((whole * denied) / (admitted + denied)))
    const bar = '█'.repeat(whole - refused) + '░'.repeat(refused)
    return [
      `${timeIn(fromMs + i * stepMs, stepMs)}  ${bar.padEnd(WIDTH)}`,
      formatCount(admitted),
      formatCount(denied),
    ]
  })
  return alignColumns([['over time (UTC): █ admitted, ░ denied', 'admitted', 'denied'], ...rows])
}

function lengthOf(count: number, most: number): number {
  return count === 0 ? 0 : Math.max(1, Math.round((WIDTH * count) / most))
}
