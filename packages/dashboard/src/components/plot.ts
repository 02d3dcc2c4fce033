// Draws a uPlot chart in an element, in the page's colors.

import type { RefObject } from 'preact'
import { useEffect, useLayoutEffect, useRef } from 'preact/hooks'
import uPlot from 'uplot'
import { colorOf, useColors } from '../theme.ts'
import 'uplot/dist/uPlot.min.css'

/**
 * Draws a plot as wide as its element, and redraws it when the colors change.
 *
 * @param look any string; the plot is also redrawn when it changes
 */
export function usePlot(
  optionsOf: (element: HTMLElement) => Omit<uPlot.Options, 'width'>,
  data: uPlot.AlignedData,
  look = '',
): RefObject<HTMLDivElement> {
  const place = useRef<HTMLDivElement>(null)
  const plot = useRef<uPlot>()
  const colors = useColors()
  useLayoutEffect(() => {
    const element = place.current!
    const options = optionsOf(element)
    const made = new uPlot({ ...options, width: Math.max(120, element.clientWidth) }, data, element)
    plot.current = made
    const observer = new ResizeObserver(() => {
      if (element.clientWidth > 0) made.setSize({ width: element.clientWidth, height: options.height })
    })
    observer.observe(element)
    return () => {
      observer.disconnect()
      made.destroy()
    }
  }, [look, colors])
  useEffect(() => plot.current?.setData(data), [data])
  return place
}

/** The style for all axes. */
export function axisIn(element: HTMLElement): uPlot.Axis {
  return {
    font: '12px system-ui, sans-serif',
    stroke: colorOf(element, '--muted'),
    grid: { stroke: colorOf(element, '--line'), width: 1 },
    ticks: { show: false },
  }
}

/** Returns a transparent version of a color, for the area below a line. */
export function faint(color: string, opacity: number): string {
  return color.replace(/^rgb\((.*)\)$/, `rgba($1, ${opacity})`)
}
