// The report as an HTML page.

import { createHash } from 'node:crypto'
import { BANDS } from '../counts/callers.ts'
import type { Step } from '../counts/over-time.ts'
import type { LimitResult } from '../counts/results.ts'
import { COMPARED_WORDS, type Compared } from '../limit-option.ts'
import type { Run } from '../replay.ts'
import { formatCount, formatDuration, formatPercent, printable } from '../text.ts'
import { bar, CHART_STEPS, type Series, sideBySide, stackedColumns } from './charts.ts'
import { remarksOf } from './format-report.ts'
import {
  type Child,
  element,
  legend,
  type Markup,
  number,
  numberHead,
  section,
  stepTable,
  table,
  together,
} from './markup.ts'
import { needsSection } from './needs.ts'
import type { Report } from './report.ts'
import { REPORT_STYLE } from './report-style.ts'

interface HtmlReportOptions {
  readonly version: string
  readonly report: Report
  /** Name of the log. */
  readonly source: string
  /** The field that the limits count by. */
  readonly key: string
  readonly run: Run
  readonly compared?: Run | undefined
  readonly nowMs: number
}

const TITLE = 'Replay report'

/** Renders the report as a standalone page without scripts. Text from the log is escaped. */
export function htmlReport(options: HtmlReportOptions): string {
  const hash = createHash('sha256').update(REPORT_STYLE).digest('base64')
  const policy = `default-src 'none'; style-src 'sha256-${hash}'; base-uri 'none'; form-action 'none'`
  const head = element(
    'head',
    {},
    element('meta', { charset: 'utf-8' }),
    element('meta', { 'http-equiv': 'Content-Security-Policy', content: policy }),
    element('meta', { name: 'viewport', content: 'width=device-width, initial-scale=1' }),
    element('meta', { name: 'referrer', content: 'no-referrer' }),
    element('title', {}, `${TITLE}: ${options.source}`),
    element('style', {}, REPORT_STYLE),
  )
  const body = element(
    'body',
    {},
    element('main', {}, headOf(options), ...sectionsOf(options)),
    element(
      'footer',
      {},
      `Created by slidegate ${options.version} at ${new Date(options.nowMs).toISOString()}. Times are in UTC.`,
    ),
  )
  return `<!doctype html>\n${element('html', { lang: 'en' }, head, body).text}\n`
}

function headOf({ report, source, key, run }: HtmlReportOptions): Markup {
  const { span, requests, admitted, denied, skipped } = report
  const when =
    span === null
      ? 'No requests.'
      : `${shortTime(span.from)} to ${shortTime(span.to)} UTC (${formatDuration(span.ms)}).`
  const { callers } = run.results
  const tile = (name: string, value: string, more = '') =>
    element(
      'div',
      {},
      element('dt', {}, name),
      element('dd', {}, value, ...(more === '' ? [] : [' ', element('small', {}, more)])),
    )
  return together([
    element('h1', {}, TITLE),
    element(
      'p',
      { class: 'quiet' },
      element('code', {}, printable(source, 200)),
      `, limited by ${printable(key)}. ${when}`,
    ),
    element(
      'dl',
      { class: 'tiles' },
      tile('requests', formatCount(requests)),
      tile('admitted', formatCount(admitted), formatPercent(admitted, requests)),
      tile('denied', formatCount(denied), formatPercent(denied, requests)),
      ...(callers === undefined
        ? []
        : [tile('callers denied', formatCount(callers.deniedCount), `of ${formatCount(callers.size)}`)]),
      tile('lines skipped', formatCount(skipped)),
    ),
  ])
}

function sectionsOf(options: HtmlReportOptions): Markup[] {
  const { report } = options
  return [
    limitsSection(options),
    ...needsSection(report.neededLimits),
    ...(report.requests === 0 ? [] : [timeSection(options), ...fullnessSections(options)]),
    callersSection(options),
    leftOutSection(options),
  ]
}

function limitsSection({ report, compared }: HtmlReportOptions): Markup {
  const { limits, compare } = report
  const other = compare && compared && COMPARED_WORDS[compare.kind]
  const rowsOf = (results: readonly LimitResult[], how: string) =>
    results.map((result) => [
      printable(result.name),
      ...(other === undefined ? [] : [how]),
      `${formatCount(result.limit)} per ${formatDuration(result.windowMs)}`,
      number(result.denied),
      number(result.fullestWindow),
      element(
        'td',
        { class: result.fullestWindow > result.limit ? 'number over' : 'number' },
        formatPercent(result.fullestWindow, result.limit),
      ),
    ])
  const rows = [...rowsOf(limits, 'sliding windows'), ...(compare ? rowsOf(compare.limits, other!) : [])]
  const heads: Child[] = ['limit', ...(other === undefined ? [] : ['algorithm']), 'allows']
  return section(
    'Limits',
    element(
      'p',
      {},
      "The fullest window is the highest number of units admitted for one caller within any interval of the window's length.",
    ),
    ...(compare === undefined
      ? []
      : [
          element(
            'p',
            {},
            `With ${other}, ${formatCount(compare.admitted)} requests would have been admitted and ${formatCount(compare.denied)} denied.`,
          ),
        ]),
    table(
      'Denials and fullest windows by limit.',
      [...heads, numberHead('denied'), numberHead('fullest window'), numberHead('% of limit')],
      rows,
    ),
  )
}

function timeSection({ run }: HtmlReportOptions): Markup {
  const steps = run.results.overTime.read(CHART_STEPS)
  const series: Series = {
    ...steps,
    values: steps.steps.map(({ admitted, denied }) => ({ admitted, denied })),
  }
  const every = formatDuration(steps.stepMs)
  const most = Math.max(...steps.steps.map(({ admitted, denied }) => admitted + denied))
  const label = `Requests over time in steps of ${every}, up to ${formatCount(most)} per step`
  return section(
    'Requests over time',
    legend([
      ['admitted', 'admitted'],
      ['denied', 'denied'],
    ]),
    element(
      'figure',
      { tabindex: 0 },
      stackedColumns(series, { label, valueText: formatCount }),
      element('figcaption', {}, `Requests per ${every}.`),
    ),
    stepTable(steps, 'Requests over time', [
      ['admitted', ({ admitted }) => formatCount(admitted)],
      ['denied', ({ denied }) => formatCount(denied)],
    ]),
  )
}

/** Renders both runs. They have the same requests, so their time steps are the same. */
function fullnessSections({ report, run, compared }: HtmlReportOptions): Markup[] {
  const steps = run.results.overTime.read(CHART_STEPS)
  const others = compared?.results.overTime.read(CHART_STEPS).steps
  const kind = report.compare?.kind
  return report.limits.map(({ name, limit, windowMs }, i) => {
    const values = steps.steps.map(({ fullest }, step) => ({
      sliding: fullest[i]!,
      ...(kind !== undefined && { [kind]: others![step]!.fullest[i]! }),
    }))
    const every = formatDuration(steps.stepMs)
    const window = `${formatCount(limit)} per ${formatDuration(windowMs)}`
    const most = Math.max(...values.flatMap((each) => Object.values(each)))
    const label = `Fullest window over time in steps of ${every}: up to ${formatCount(most)}, with a limit of ${formatCount(limit)}`
    const mark = { value: limit, label: `limit ${formatCount(limit)}` }
    return section(
      `Window usage: ${printable(name)}`,
      element('p', { class: 'quiet' }, `${window}.`),
      ...(kind === undefined
        ? []
        : [
            legend([
              ['sliding', 'sliding windows'],
              [kind, COMPARED_WORDS[kind]],
            ]),
          ]),
      element(
        'figure',
        { tabindex: 0 },
        sideBySide({ ...steps, values }, { label, valueText: formatCount, mark }),
        element(
          'figcaption',
          {},
          `The highest count that any caller reached in a window, for each ${every}.`,
        ),
      ),
      stepTable(steps, 'Fullest window of any caller', [
        ['sliding windows', (_, step) => formatCount(values[step]!.sliding)],
        ...(kind === undefined
          ? []
          : [
              [
                COMPARED_WORDS[kind],
                (_: Step, step: number) => formatCount(others![step]!.fullest[i]!),
              ] as const,
            ]),
      ]),
      ...fullestByCallers(limit, i, run, kind, compared),
    )
  })
}

/** Counts callers by the usage of their fullest window. */
function fullestByCallers(
  limit: number,
  i: number,
  { results }: Run,
  kind: Compared | undefined,
  compared: Run | undefined,
): Markup[] {
  const columns = [
    { name: 'sliding', head: 'sliding windows', counts: results.callers?.byBand(i, limit) },
    {
      name: kind ?? '',
      head: kind && COMPARED_WORDS[kind],
      counts: compared?.results.callers?.byBand(i, limit),
    },
  ].filter(({ counts }) => counts !== undefined)
  const most = Math.max(1, ...columns.flatMap(({ counts }) => counts!))
  const rows = BANDS.flatMap(({ from, to }, band) => {
    const isOver = from >= 100 && to > 100
    if (isOver && columns.every(({ counts }) => counts![band] === 0)) return []
    const cells = columns.flatMap(({ name, counts }) => [
      number(counts![band]!),
      element('td', { class: 'wide' }, bar(counts![band]! / most, name)),
    ])
    return [[bandText(from, to), ...cells]]
  })
  const heads = columns.flatMap(({ head }) => [
    numberHead(kind === undefined ? 'callers' : `callers, ${head}`),
    element('td', {}),
  ])
  return [
    element('h3', {}, 'Fullest window per caller'),
    table('Number of callers by share of the limit.', ['% of limit', ...heads], rows),
  ]
}

/** See `BANDS`. */
function bandText(from: number, to: number): string {
  if (from === to) return 'full, 100%'
  if (from === 0) return `below ${to}%`
  if (to === Number.POSITIVE_INFINITY) return `${from}% or more`
  return from === 100 ? `over 100% to ${to}%` : `${from}% to ${to}%`
}

function callersSection({ report, run }: HtmlReportOptions): Markup {
  const { topDenied, denied } = report
  if (topDenied.length === 0) return section('Most denied callers', element('p', {}, 'No denials.'))
  const most = topDenied[0]!.denied
  const rows = topDenied.map((caller) => {
    const counts = run.results.callers?.get(caller.key)
    return [
      element('code', {}, printable(caller.key, 100)),
      counts === undefined ? number('-') : number(counts.requests),
      number(caller.denied),
      number(formatPercent(caller.denied, denied)),
      element('td', { class: 'wide' }, bar(caller.denied / most, 'denied')),
    ]
  })
  return section(
    'Most denied callers',
    table(
      `The ${formatCount(rows.length)} callers with the most denials.`,
      ['caller', numberHead('requests'), numberHead('denied'), numberHead('% of denials'), element('td', {})],
      rows,
    ),
  )
}

function leftOutSection({ report, run }: HtmlReportOptions): Markup {
  const { skipped, skippedReasons, badLines } = report
  const uncounted = run.results.callers?.uncounted ?? 0
  const remarks = [
    ...remarksOf(report),
    ...(uncounted > 0
      ? [`${formatCount(uncounted)} requests aren't counted by caller, because the log has too many callers`]
      : []),
  ].map((remark) => element('p', {}, `${remark}.`))
  if (skipped === 0 && remarks.length === 0) return together([])
  const reasons = Object.entries(skippedReasons).sort(([, a], [, b]) => b - a)
  const skippedLines = [
    table(
      'Skipped lines by reason.',
      ['reason', numberHead('lines')],
      reasons.map(([reason, count]) => [reason, number(count)]),
    ),
    table(
      'The first skipped lines.',
      [numberHead('line'), 'reason', 'text'],
      badLines.map(({ line, reason, text }) => [number(line), reason, element('code', {}, text)]),
    ),
  ]
  return section('Skipped lines and remarks', ...remarks, ...(skipped === 0 ? [] : skippedLines))
}

function shortTime(iso: string): string {
  return iso.slice(0, 19).replace('T', ' ')
}
