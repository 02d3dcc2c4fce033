// "Which limit would fit?" as terminal text and as a section of the HTML report.

import type { NeedsOfWindow } from '../counts/needed-limits.ts'
import { alignColumns, formatCount, formatDuration, formatPercent } from '../text.ts'
import { element, type Markup, number, numberHead, section, table } from './markup.ts'

const TITLE = 'Which limit would fit?'

export function formatNeeds(windows: readonly NeedsOfWindow[]): string[] {
  const [first] = windows
  if (first === undefined) return []
  return [
    TITLE,
    `  The lowest sliding window limit at which this share of callers is never denied (${formatCount(first.callers)} in total):`,
    ...alignColumns([
      ['', ...first.needs.map(({ share }) => formatPercent(share, 1))],
      ...windows.map(({ windowMs, needs }) => [
        `per ${formatDuration(windowMs)}`,
        ...needs.map(({ limit }) => formatCount(limit)),
      ]),
    ]),
    ...remarkOf(windows).map((remark) => `  ${remark}`),
  ]
}

export function needsSection(windows: readonly NeedsOfWindow[]): Markup[] {
  const [first] = windows
  if (first === undefined) return []
  const rows = windows.map(({ windowMs, needs }) => [
    formatDuration(windowMs),
    ...needs.map(({ limit }) => number(limit)),
  ])
  const heads = ['window', ...first.needs.map(({ share }) => numberHead(formatPercent(share, 1)))]
  return [
    section(
      TITLE,
      table('The lowest sliding window limit at which this share of callers is never denied.', heads, rows),
      ...remarkOf(windows).map((remark) => element('p', {}, remark)),
    ),
  ]
}

function remarkOf(windows: readonly NeedsOfWindow[]): string[] {
  return windows.every(({ exact }) => exact)
    ? []
    : ['There were too many callers to count all of them, so these numbers may be inexact.']
}
