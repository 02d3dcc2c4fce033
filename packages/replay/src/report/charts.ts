// Bar charts over time, as SVG.

import { timeIn } from '../counts/over-time.ts'
import { element, type Markup, together } from './markup.ts'

/** Maximum number of columns in a chart. */
export const CHART_STEPS = 120

const WIDTH = 880
const HEIGHT = 220
const LEFT = 64
const RIGHT = 12
const TOP = 12
const BOTTOM = 28
const INNER_WIDTH: number = WIDTH - LEFT - RIGHT
const INNER_HEIGHT: number = HEIGHT - TOP - BOTTOM

/** Values over time. Their names are also CSS classes. */
export interface Series {
  readonly fromMs: number
  readonly stepMs: number
  /** One entry per step. */
  readonly values: readonly Readonly<Record<string, number>>[]
}

interface ChartOptions {
  /** Text alternative for the chart. */
  readonly label: string
  readonly valueText: (value: number) => string
  /** A horizontal line. */
  readonly mark?: { readonly value: number; readonly label: string }
}

/** Stacks the values of each step. */
export function stackedColumns(series: Series, options: ChartOptions): Markup {
  const sums = series.values.map((values) => Object.values(values).reduce((sum, value) => sum + value, 0))
  const scale = scaleTo(Math.max(1, ...sums))
  return chart(series, scale, options, (x, width) =>
    series.values.map((values, i) => {
      let below = 0
      const parts = Object.entries(values).flatMap(([name, value]) => {
        if (value === 0) return []
        const [bottom, top] = [yAt(below, scale), yAt(below + value, scale)]
        below += value
        // Makes even the smallest value visible.
        const height = Math.max(1, bottom - top)
        return element('rect', {
          ...{ class: name, x: px(x(i)), y: px(bottom - height) },
          ...{ width: px(width), height: px(height) },
        })
      })
      return parts.length === 0 ? together([]) : element('g', {}, titleOf(series, i, options), ...parts)
    }),
  )
}

/** Draws the values of each step side by side. */
export function sideBySide(series: Series, options: ChartOptions): Markup {
  const most = series.values.flatMap((values) => Object.values(values))
  const scale = scaleTo(Math.max(options.mark?.value ?? 1, ...most))
  return chart(series, scale, options, (x, width) =>
    series.values.map((values, i) => {
      const names = Object.keys(values)
      const each = width / names.length
      const bars = names.map((name, at) => {
        const top = yAt(values[name]!, scale)
        const height = yAt(0, scale) - top
        return element('rect', {
          ...{ class: name, x: px(x(i) + at * each), y: px(top) },
          ...{ width: px(each), height: px(height) },
        })
      })
      return element('g', {}, titleOf(series, i, options), ...bars)
    }),
  )
}

/** A bar next to a number in a table. */
export function bar(share: number, name: string): Markup {
  const width = share === 0 ? 0 : Math.max(1, 100 * share)
  return element(
    'svg',
    { class: 'bar', viewBox: '0 0 100 10', preserveAspectRatio: 'none', 'aria-hidden': 'true' },
    element('rect', { class: name, width: px(width), height: 10 }),
  )
}

interface Scale {
  readonly most: number
  readonly ticks: readonly number[]
}

/** Chooses ticks for at most five steps. A step is 1, 2, 2.5 or 5 times a power of ten. */
function scaleTo(most: number): Scale {
  const power = 10 ** Math.floor(Math.log10(most / 4))
  const step = Math.max(1, [1, 2, 2.5, 5, 10].map((each) => each * power).find((each) => 5 * each >= most)!)
  const count = Math.ceil(most / step)
  return { most: count * step, ticks: Array.from({ length: count + 1 }, (_, i) => i * step) }
}

function chart(
  { fromMs, stepMs, values }: Series,
  scale: Scale,
  { label, valueText, mark }: ChartOptions,
  marks: (x: (i: number) => number, width: number) => readonly Markup[],
): Markup {
  const pitch = INNER_WIDTH / Math.max(1, values.length)
  const x = (i: number) => LEFT + i * pitch
  const right = WIDTH - RIGHT
  const lines = scale.ticks.flatMap((tick) => {
    const y = px(yAt(tick, scale))
    return [
      element('line', { class: 'grid', x1: LEFT, x2: right, y1: y, y2: y }),
      element('text', { x: LEFT - 8, y: px(yAt(tick, scale) + 4), class: 'end' }, valueText(tick)),
    ]
  })
  const every = Math.max(1, Math.ceil(values.length / 6))
  const times = values.flatMap((_, i) => {
    if (i % every !== 0 || x(i) > right - 60) return []
    return element(
      'text',
      { x: px(x(i)), y: HEIGHT - 8 },
      timeIn(fromMs + i * stepMs, stepMs).replace(/^\d+-/, ''),
    )
  })
  const across = mark && [
    element('line', {
      class: 'mark',
      x1: LEFT,
      x2: right,
      y1: px(yAt(mark.value, scale)),
      y2: px(yAt(mark.value, scale)),
    }),
    element('text', { class: 'end mark', x: right, y: px(yAt(mark.value, scale) - 5) }, mark.label),
  ]
  return element(
    'svg',
    { class: 'chart', viewBox: `0 0 ${WIDTH} ${HEIGHT}`, role: 'img', 'aria-label': label },
    ...lines,
    ...marks(x, Math.max(0.5, pitch > 4 ? pitch - 1 : pitch)),
    ...times,
    ...(across ?? []),
  )
}

function titleOf({ fromMs, stepMs, values }: Series, i: number, { valueText }: ChartOptions): Markup {
  const texts = Object.entries(values[i]!).map(([name, value]) => `${valueText(value)} ${name}`)
  return element('title', {}, `${timeIn(fromMs + i * stepMs, stepMs)}: ${texts.join(', ')}`)
}

function yAt(value: number, { most }: Scale): number {
  return TOP + INNER_HEIGHT * (1 - value / most)
}

/** Rounds a length to one decimal place, which is precise enough to draw. */
function px(length: number): string {
  return `${Math.round(10 * length) / 10}`
}
