// The report as terminal text, with a chart over time.

import { type OverTime, timeIn } from '../counts/over-time.ts'
import type { LimitResult } from '../counts/results.ts'
import { COMPARED_WORDS } from '../limit-option.ts'
import { alignColumns, formatCount, formatDuration, formatPercent, printable } from '../text.ts'
import { formatNeeds } from './needs.ts'
import type { Report } from './report.ts'

/** Formats the report as aligned text in sections. */
export function formatReport(report: Report, chart: readonly string[] = []): string {
  const { compare } = report
  const sections = [
    totals(report),
    skippedLines(report),
    report.limits.length === 0 ? undefined : ['limits (sliding windows)', ...limitTable(report.limits)],
    compare && [
      `with ${COMPARED_WORDS[compare.kind]}: ${formatCount(compare.admitted)} admitted, ${formatCount(compare.denied)} denied`,
      ...limitTable(compare.limits),
    ],
    formatNeeds(report.neededLimits),
    chart,
    topDenied(report),
    remarksOf(report),
  ]
  return sections
    .filter((lines) => lines !== undefined && lines.length > 0)
    .map((lines) => `${lines!.join('\n')}\n`)
    .join('\n')
}

function totals({ requests, skipped, admitted, denied, limits, span }: Report): string[] {
  const counts = alignColumns([
    ['requests', formatCount(requests), ''],
    ...(limits.length === 0
      ? []
      : [
          ['admitted', formatCount(admitted), formatPercent(admitted, requests)],
          ['denied', formatCount(denied), formatPercent(denied, requests)],
        ]),
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
    'first skipped lines',
    ...badLines.map(({ line, reason, text }) => `  line ${line}: ${reason}: ${text}`),
  ]
}

function limitTable(limits: readonly LimitResult[]): string[] {
  return alignColumns([
    ['', 'limit', 'denied', 'fullest window', '% of limit'],
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
    'most denied',
    ...alignColumns(topDenied.map(({ key, denied }) => [printable(key, 60), formatCount(denied)])),
  ]
}

/** Caveats about the numbers. */
export function remarksOf({ releasedEarly, forgottenCallers }: Report): string[] {
  const lines: string[] = []
  if (releasedEarly > 0) {
    lines.push(
      `${formatCount(releasedEarly)} requests were decided before the time in --reorder had passed, because too many were waiting; use a shorter time`,
    )
  }
  if (forgottenCallers > 0) {
    lines.push(
      `${formatCount(forgottenCallers)} callers were evicted while their usage still counted; use --store redis://... for more capacity`,
    )
  }
  return lines
}

const ROWS = 24
const WIDTH = 40

/** Draws a bar for the requests in each time step. */
export function formatChart(overTime: OverTime): string[] {
  const { fromMs, stepMs, steps } = overTime.read(ROWS)
  if (steps.length === 0) return []
  const most = Math.max(...steps.map(({ admitted, denied }) => admitted + denied))
  const rows = steps.map(({ admitted, denied }, i) => {
    const whole = lengthOf(admitted + denied, most)
    // Makes even a single denial visible.
    const deniedLength = denied === 0 ? 0 : Math.max(1, Math.round((whole * denied) / (admitted + denied)))
    const bar = '█'.repeat(whole - deniedLength) + '░'.repeat(deniedLength)
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
