// The report as text for a terminal, with a chart over time.

import { type OverTime, timeIn } from '../counts/over-time.ts'
import type { LimitResult } from '../counts/tally.ts'
import { COMPARED_WORDS } from '../limit-option.ts'
import { alignColumns, formatCount, formatDuration, formatPercent, printable } from '../text.ts'
import type { Report } from './report.ts'

/** The report for people: aligned text, a section for each thing there is to say. */
export function formatReport(report: Report, chart: readonly string[] = []): string {
  const { compare } = report
  const sections = [
    totals(report),
    skippedLines(report),
    ['limits, over sliding windows', ...limitTable(report.limits)],
    compare && [
      `with ${COMPARED_WORDS[compare.kind]}: ${formatCount(compare.admitted)} admitted, ${formatCount(compare.denied)} denied`,
      ...limitTable(compare.limits),
    ],
    chart,
    topDenied(report),
    remarksOf(report),
  ]
  return sections
    .filter((lines) => lines !== undefined && lines.length > 0)
    .map((lines) => `${lines!.join('\n')}\n`)
    .join('\n')
}

function totals({ requests, skipped, admitted, denied, span }: Report): string[] {
  const counts = alignColumns([
    ['requests', formatCount(requests), ''],
    ['admitted', formatCount(admitted), formatPercent(admitted, requests)],
    ['denied', formatCount(denied), formatPercent(denied, requests)],
    ['skipped', formatCount(skipped), ''],
  ])
  if (span === null) return ['no requests in this log', ...counts]
  return [`${span.from} to ${span.to} (${formatDuration(span.ms)})`, ...counts]
}

function skippedLines({ skipped, skippedReasons, badLines }: Report): string[] {
  if (skipped === 0) return []
  const reasons = Object.entries(skippedReasons).sort(([, a], [, b]) => b - a)
  return [
    'skipped lines',
    ...alignColumns(reasons.map(([reason, count]) => [reason, formatCount(count)])),
    'the first of them',
    ...badLines.map(({ line, reason, text }) => `  line ${line}: ${reason}: ${text}`),
  ]
}

function limitTable(limits: readonly LimitResult[]): string[] {
  return alignColumns([
    ['', 'limit', 'denied', 'fullest window', 'of the limit'],
    ...limits.map(({ name, limit, windowMs, denied, fullestWindow }) => [
      name,
      `${formatCount(limit)} per ${formatDuration(windowMs)}`,
      formatCount(denied),
      formatCount(fullestWindow),
      formatPercent(fullestWindow, limit),
    ]),
  ])
}

function topDenied({ topDenied }: Report): string[] {
  if (topDenied.length === 0) return []
  return [
    'denied most',
    ...alignColumns(topDenied.map(({ key, denied }) => [printable(key, 60), formatCount(denied)])),
  ]
}

/** What makes the numbers less than exact. */
export function remarksOf({ releasedEarly, forgottenCallers }: Report): string[] {
  const lines: string[] = []
  if (releasedEarly > 0) {
    lines.push(
      `${formatCount(releasedEarly)} requests were decided early, because too many were held for reordering; a smaller --reorder holds fewer`,
    )
  }
  if (forgottenCallers > 0) {
    lines.push(
      `${formatCount(forgottenCallers)} callers were forgotten while they still counted, because there were too many at once; --store redis://... holds more`,
    )
  }
  return lines
}

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
