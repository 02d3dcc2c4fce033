import { stripVTControlCharacters } from 'node:util'
import { Chartscii } from 'chartscii'
import { formatPercent } from '../text.ts'

export interface Bar {
  readonly label: string
  readonly value: number
  readonly color: 'red' | 'green'
}

/** Horizontal bars, each with its value as a share of `whole`. */
export function barChart(bars: readonly Bar[], whole: number, withColor: boolean): string {
  const chart = new Chartscii([...bars], {
    width: 40,
    barSize: 1,
    height: bars.length,
    valueLabels: true,
    valueLabelFormat: ([value]) => `${value} of ${whole} = ${formatPercent(Number(value), whole)}`,
  })
  // The chart has escape sequences even where no colour was asked for.
  const text = chart.create()
  return withColor ? text : stripVTControlCharacters(text)
}
