import { useEffect, useLayoutEffect, useRef, useState } from 'preact/hooks'
import uPlot from 'uplot'
import 'uplot/dist/uPlot.min.css'
import { NONE, timeOfDay } from '../format.ts'
import { colourOf, useColours } from '../theme.ts'

export type ChartTone = 'allowed' | 'denied' | 'shadow-denied' | 'accent' | 'muted'

export interface ChartSeries {
  readonly label: string
  readonly tone: ChartTone
  /** One for each second; `null` where there is none. */
  readonly values: readonly (number | null)[]
  readonly isDashed?: boolean
  /** Whether what is below the line is filled. */
  readonly isFilled?: boolean
}

const FONT = '12px system-ui, sans-serif'

/** Lines over time. The legend tells the latest values, or those under the pointer; other charts point at the same time. */
export function Chart({
  title,
  seconds,
  series,
  format,
  spanSeconds = 300,
  height = 180,
}: {
  readonly title: string
  /** Epoch seconds, rising. */
  readonly seconds: readonly number[]
  readonly series: readonly ChartSeries[]
  /** How a value is written. */
  readonly format: (value: number) => string
  /** How far back it reaches; 0: as far as there is anything. Default: 300. */
  readonly spanSeconds?: number
  readonly height?: number
}) {
  const place = useRef<HTMLDivElement>(null)
  const plot = useRef<uPlot>()
  const [pointed, setPointed] = useState<number | null>(null)
  const colours = useColours()
  const shape = series.map(({ label, tone, isDashed, isFilled }) => [label, tone, isDashed, isFilled])
  const look = JSON.stringify([shape, spanSeconds, height])
  const current = useRef({ seconds, series, format })
  current.current = { seconds, series, format }

  useLayoutEffect(() => {
    const element = place.current!
    const text = colourOf(element, '--muted')
    const grid = colourOf(element, '--line')
    const axis: uPlot.Axis = {
      font: FONT,
      stroke: text,
      grid: { stroke: grid, width: 1 },
      ticks: { show: false },
    }
    const made = new uPlot(
      {
        width: Math.max(120, element.clientWidth),
        height,
        legend: { show: false },
        cursor: { drag: { x: false, y: false }, y: false, points: { size: 7 }, sync: { key: 'time' } },
        scales: {
          x: { time: true, range: (_plot, first, last) => reach(first, last, spanSeconds) },
          y: { range: (_plot, _least, most) => [0, most > 0 ? most * 1.1 : 1] },
        },
        padding: [8, 8, 0, 0],
        axes: [
          {
            ...axis,
            space: 90,
            size: 26,
            values: (_plot, times) => times.map((time) => timeOfDay(time * 1000)),
          },
          {
            ...axis,
            size: 62,
            values: (_plot, values) => values.map((value) => current.current.format(value)),
          },
        ],
        series: [
          {},
          ...series.map(({ label, tone, isDashed, isFilled }): uPlot.Series => {
            const colour = colourOf(element, `--${tone}`)
            return {
              label,
              stroke: colour,
              width: 1.75,
              points: { show: false },
              ...(isDashed && { dash: [5, 4] }),
              ...(isFilled && { fill: colour.replace(/^rgb\((.*)\)$/, 'rgba($1, 0.13)') }),
            }
          }),
        ],
        hooks: { setCursor: [({ cursor }) => setPointed(cursor.idx ?? null)] },
      },
      dataOf(current.current),
      element,
    )
    plot.current = made
    const observer = new ResizeObserver(() => {
      if (element.clientWidth > 0) made.setSize({ width: element.clientWidth, height })
    })
    observer.observe(element)
    return () => {
      observer.disconnect()
      made.destroy()
    }
  }, [look, colours])

  useEffect(() => {
    plot.current?.setData(dataOf({ seconds, series }))
  }, [seconds, series])

  const at = pointed !== null && pointed < seconds.length ? pointed : seconds.length - 1
  const told = series.map(({ values }) => {
    const value = values[at]
    return value === null || value === undefined ? NONE : format(value)
  })
  const time = seconds[at] === undefined ? '' : timeOfDay(seconds[at] * 1000)
  const described = series.map(({ label }, i) => `${label} ${told[i]}`).join(', ')
  return (
    <figure class="chart" data-seconds={seconds.length} data-last={seconds.at(-1)}>
      <figcaption>
        <span class="chart-title">{title}</span>
        <ul class="legend">
          {series.map(({ label, tone, isDashed }, i) => (
            <li key={label}>
              <span class={`swatch ${tone}${isDashed ? ' dashed' : ''}`} />
              {label} <span class="legend-value">{told[i]}</span>
            </li>
          ))}
          <li class="muted">{time || NONE}</li>
        </ul>
      </figcaption>
      <div ref={place} class="plot" role="img" aria-label={`${title}: ${described}`} />
    </figure>
  )
}

function reach(first: number, last: number, spanSeconds: number): [number, number] {
  const end = last ?? Math.floor(Date.now() / 1000)
  if (spanSeconds > 0) return [end - spanSeconds + 1, end]
  return first < end ? [first, end] : [end - 1, end]
}

function dataOf({
  seconds,
  series,
}: {
  readonly seconds: readonly number[]
  readonly series: readonly ChartSeries[]
}): uPlot.AlignedData {
  return [seconds, ...series.map(({ values }) => values)] as unknown as uPlot.AlignedData
}
