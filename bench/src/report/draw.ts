import { type EChartsOption, init } from 'echarts'
import type { BarPlot, LinePlot, Plot, Role } from './plot.ts'

const WIDTH = 860
const INK = '#1f2328'
const FAINT = '#d9dee4'
const FONT = 'system-ui, -apple-system, Helvetica, Arial, sans-serif'

/** Colors of bars by role, with a lighter shade per further series. */
const SHADES: Readonly<Record<Role, readonly [string, string, string]>> = {
  ours: ['#1f6feb', '#8ab8ff', '#c9deff'],
  peer: ['#7d8590', '#b9c0c8', '#dde1e6'],
  floor: ['#c7a252', '#e2cd9c', '#f1e6cd'],
}

/** Colors of further lines, which also differ in their points. */
const OTHERS = ['#b35900', '#5c6670', '#1a7f64', '#a0458f', '#8d7b1e', '#c0392b', '#4b5fa8']
const POINTS = ['circle', 'rect', 'triangle', 'diamond', 'emptyCircle', 'emptyRect', 'emptyTriangle']

/** Draws a plot as SVG, on white for light and dark pages. */
export function drawPlot(plot: Plot): string {
  return plot.kind === 'bars' ? drawBars(plot) : drawLines(plot)
}

function drawBars(plot: BarPlot): string {
  const { axis, series, mark } = plot
  // The category axis goes upwards, so this puts the largest value at the top.
  const bars = plot.bars.toSorted((a, b) => (a.values[0] ?? 0) - (b.values[0] ?? 0))
  const isGrouped = series.length > 1
  // Text can't be measured without a browser. This estimate leaves room for wide letters.
  const left = 30 + 7.8 * Math.max(...bars.map(({ label }) => label.length))
  const rowHeight = isGrouped ? 12 + 15 * series.length : 27
  return draw(plot, {
    height: 118 + rowHeight * bars.length + (isGrouped ? 26 : 0),
    grid: { left, right: 76, top: isGrouped ? 82 : 56, bottom: 58 },
    // The shade shows the series, and the color shows the role.
    legend: isGrouped ? { top: 42, left, itemGap: 48, textStyle: { color: INK, fontSize: 12 } } : undefined,
    xAxis: { ...valueAxis(axis, leastOf(plot)), max: greatestOf(plot) },
    yAxis: {
      type: 'category',
      data: bars.map(({ label }) => label),
      axisTick: { show: false },
      axisLine: { lineStyle: { color: INK } },
      axisLabel: {
        color: INK,
        fontSize: 12.5,
        interval: 0,
        formatter: (label: string) => (isOurs(bars, label) ? `{ours|${label}}` : label),
        rich: { ours: { fontWeight: 'bold', color: SHADES.ours[0], fontSize: 12.5 } },
      },
    },
    series: series.map((name, shade) => ({
      name,
      type: 'bar',
      barGap: '8%',
      barCategoryGap: isGrouped ? '30%' : '34%',
      color: SHADES.peer[shade],
      label: { show: true, position: 'right', color: INK, fontSize: 12, formatter: labelOf },
      markLine: mark === undefined || shade > 0 ? undefined : markLine(mark),
      data: bars.map(({ values, role = 'peer' }) => ({
        value: values[shade] ?? '-',
        itemStyle: { color: SHADES[role][shade] },
      })),
    })),
  })
}

function isOurs(bars: BarPlot['bars'], label: string): boolean {
  return bars.find((bar) => bar.label === label)?.role === 'ours'
}

function markLine({ label, value }: NonNullable<BarPlot['mark']>) {
  return {
    silent: true,
    symbol: 'none',
    lineStyle: { color: INK, type: 'dashed' as const, width: 1.2 },
    label: { formatter: label, color: INK, fontSize: 12, position: 'end' as const },
    data: [{ xAxis: value }],
  }
}

function drawLines(plot: LinePlot): string {
  const { x, y, lines } = plot
  const others = lines.filter(({ role }) => role !== 'ours')
  return draw(plot, {
    height: 420,
    grid: { left: 84, right: 226, top: 60, bottom: 62 },
    legend: {
      orient: 'vertical',
      left: WIDTH - 212,
      top: 60,
      itemGap: 13,
      textStyle: { color: INK, fontSize: 12.5, width: 168, overflow: 'break' },
    },
    xAxis: valueAxis(x, leastOf(plot, 0)),
    yAxis: { ...valueAxis(y, leastOf(plot, 1)), nameRotate: 90, nameGap: 54 },
    series: lines.map((line) => {
      const number = others.indexOf(line)
      const color = line.role === 'ours' ? SHADES.ours[0] : OTHERS[number % OTHERS.length]
      return {
        name: line.label,
        type: 'line',
        color,
        symbol: line.role === 'ours' ? 'circle' : POINTS[number % POINTS.length],
        symbolSize: 8,
        z: line.role === 'ours' ? 3 : 2,
        lineStyle: {
          width: line.role === 'ours' ? 3.5 : 1.8,
          type: line.role === 'floor' ? 'dashed' : 'solid',
        },
        data: line.points.map(([x, y]) => [x, y]),
      }
    }),
  })
}

/** Returns the start of a logarithmic axis: the power of ten below all values. */
function leastOf(plot: Plot, coordinate: 0 | 1 = 0): number {
  const values =
    plot.kind === 'bars'
      ? plot.bars.flatMap(({ values }) => values.filter((value) => value !== null))
      : plot.lines.flatMap(({ points }) => points.map((point) => point[coordinate]))
  const least = Math.min(...values.filter((value) => value > 0))
  return 10 ** Math.floor(Math.log10(least))
}

/** Returns the end of the axis if the mark is beyond all bars. */
function greatestOf({ bars, mark }: BarPlot): number | undefined {
  const greatest = Math.max(...bars.flatMap(({ values }) => values.map((value) => value ?? 0)))
  return mark !== undefined && greatest < mark.value ? mark.value : undefined
}

function valueAxis({ label, isLog }: { label: string; isLog?: boolean }, least: number) {
  return {
    type: isLog ? ('log' as const) : ('value' as const),
    min: isLog ? least : 0,
    name: isLog ? `${label} (logarithmic)` : label,
    nameLocation: 'middle' as const,
    nameGap: 32,
    nameTextStyle: { color: INK, fontSize: 12.5 },
    axisLine: { show: true, lineStyle: { color: INK } },
    axisLabel: { color: INK, fontSize: 12, formatter: withCommas },
    splitLine: { lineStyle: { color: FAINT } },
  }
}

function draw({ title }: Plot, { height, ...option }: EChartsOption & { readonly height: number }): string {
  const chart = init(null, null, { renderer: 'svg', ssr: true, width: WIDTH, height })
  chart.setOption({
    animation: false,
    backgroundColor: '#ffffff',
    textStyle: { fontFamily: FONT },
    title: { text: title, left: 14, top: 12, textStyle: { color: INK, fontSize: 15, fontFamily: FONT } },
    ...option,
  } as EChartsOption)
  const svg = chart.renderToSVGString()
  chart.dispose()
  return `${still(svg)}\n`
}

/** Removes parts that only scripts use, and numbers that differ between drawings. */
function still(svg: string): string {
  return svg
    .replace(/ (class="zr\d+-cls-\d+"|ecmeta_\w+="[^"]*")/g, '')
    .replace(/<style >[\s\S]*?<\/style>\n?/, '')
    .replace(/zr\d+-/g, 'clip-')
}

function labelOf({ value }: { value?: unknown }): string {
  return typeof value === 'number' ? threeDigits(value) : ''
}

/** Formats a number with three digits: 0.123, 1.23, 12.3, 123, 1,234. */
function threeDigits(value: number): string {
  if (value === 0) return '0'
  const decimals = Math.max(0, Math.min(3, 2 - Math.floor(Math.log10(Math.abs(value)))))
  return withCommas(Number(value.toFixed(decimals)))
}

function withCommas(value: number): string {
  return value.toLocaleString('en-US', { maximumFractionDigits: 6 })
}
