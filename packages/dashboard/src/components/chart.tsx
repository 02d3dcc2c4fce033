// Charts over time: a general line chart, and requests per second.

import { useMemo, useRef, useState } from 'preact/hooks'
import type uPlot from 'uplot'
import type { History } from '../../../server/src/admin/api-types.ts'
import { axisTime, NONE, rate, stepTime } from '../format.ts'
import { colorOf } from '../theme.ts'
import { axisIn, faint, usePlot } from './plot.ts'

type ChartTone = 'allowed' | 'denied' | 'shadow-denied' | 'accent' | 'muted'

export interface ChartSeries {
  readonly label: string
  readonly tone: ChartTone
  /** One value per step, or `null` if there is none. */
  readonly values: readonly (number | null)[]
  readonly isDashed?: boolean
  /** Whether the area below the line is filled. */
  readonly isFilled?: boolean
}

const HEIGHT = 180

/** The number of steps shown if a step is one second. Charts with longer steps show all their data. */
const SECONDS = 300

/**
 * A line chart over time. The legend shows the values at the pointer, or the latest values if the pointer is
 * elsewhere. All charts with the same steps share the position of the pointer.
 */
export function Chart({
  title,
  seconds,
  stepSeconds = 1,
  series,
  format,
}: {
  readonly title: string
  /** Epoch seconds, in ascending order. */
  readonly seconds: readonly number[]
  /** The number of seconds between values. Default: 1. */
  readonly stepSeconds?: number
  readonly series: readonly ChartSeries[]
  readonly format: (value: number) => string
}) {
  const [pointed, setPointed] = useState<number | null>(null)
  const shape = series.map(({ label, tone, isDashed, isFilled }) => [label, tone, isDashed, isFilled])
  const writer = useRef(format)
  writer.current = format
  const data = useMemo(() => dataOf(seconds, series), [seconds, series])
  const place = usePlot(
    (element) => {
      const axis = axisIn(element)
      return {
        height: HEIGHT,
        legend: { show: false },
        cursor: {
          drag: { x: false, y: false },
          y: false,
          points: { size: 7 },
          sync: { key: `time-${stepSeconds}` },
        },
        scales: {
          x: { time: true, range: (_plot, first, last) => reach(first, last, stepSeconds) },
          y: { range: (_plot, _least, most) => [0, most > 0 ? most * 1.1 : 1] },
        },
        padding: [8, 24, 0, 0],
        axes: [
          {
            ...axis,
            space: 90,
            size: 26,
            values: (_plot, times) => times.map((time) => axisTime(time * 1000, stepSeconds)),
          },
          { ...axis, size: 62, values: (_plot, values) => values.map((value) => writer.current(value)) },
        ],
        series: [
          {},
          ...series.map(({ label, tone, isDashed, isFilled }): uPlot.Series => {
            const color = colorOf(element, `--${tone}`)
            return {
              label,
              stroke: color,
              width: 1.75,
              points: { size: 4, fill: color, filter: alone },
              ...(isDashed && { dash: [5, 4] }),
              ...(isFilled && { fill: faint(color, 0.13) }),
            }
          }),
        ],
        hooks: { setCursor: [({ cursor }) => setPointed(cursor.idx ?? null)] },
      }
    },
    data,
    JSON.stringify([shape, stepSeconds]),
  )

  const at = pointed !== null && pointed < seconds.length ? pointed : seconds.length - 1
  const texts = series.map(({ values }) => {
    const value = values[at]
    return value === null || value === undefined ? NONE : format(value)
  })
  const time = seconds[at] === undefined ? '' : stepTime(seconds[at] * 1000, stepSeconds)
  const described = series.map(({ label }, i) => `${label} ${texts[i]}`).join(', ')
  return (
    <figure class="chart" data-seconds={seconds.length} data-last={seconds.at(-1)}>
      <figcaption>
        <span class="chart-title">{title}</span>
        <ul class="legend">
          {series.map(({ label, tone, isDashed }, i) => (
            <li key={label}>
              <span class={`swatch ${tone}${isDashed ? ' dashed' : ''}`} />
              {label} <span class="legend-value">{texts[i]}</span>
            </li>
          ))}
          <li class="muted">{time || NONE}</li>
        </ul>
      </figcaption>
      <div ref={place} class="plot" role="img" aria-label={`${title}: ${described}`} />
    </figure>
  )
}

function reach(first: number | null, last: number | null, stepSeconds: number): [number, number] {
  const end = last ?? Math.floor(Date.now() / 1000)
  return [stepSeconds > 1 && first !== null ? first : end - SECONDS + 1, end]
}

/** Returns the indexes of points with a gap on both sides. A line wouldn't show them. */
function alone({ data }: uPlot, line: number): number[] {
  const values = data[line]!
  const isGap = (i: number) => values[i] === null || values[i] === undefined
  return Array.from(values, (_, i) => i).filter((i) => !isGap(i) && isGap(i - 1) && isGap(i + 1))
}

function dataOf(seconds: readonly number[], series: readonly ChartSeries[]): uPlot.AlignedData {
  return [seconds, ...series.map(({ values }) => values)] as unknown as uPlot.AlignedData
}

/** Charts the decisions from the last few minutes. */
export function RequestChart({ title, history }: { readonly title: string; readonly history: History }) {
  const { seconds, allowed, denied, shadowDenied } = history
  return (
    <Chart
      title={title}
      seconds={seconds}
      format={rate}
      series={[
        { label: 'Allowed', tone: 'allowed', values: allowed, isFilled: true },
        { label: 'Denied', tone: 'denied', values: denied },
        { label: 'Shadow denials', tone: 'shadow-denied', values: shadowDenied, isDashed: true },
      ]}
    />
  )
}
