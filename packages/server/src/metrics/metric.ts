// Metrics that are made when Prometheus asks.

import type { Aggregator } from 'prom-client'
import type { HistogramCounts } from 'slidegate/metrics'

type Labels = Readonly<Record<string, string>>

interface Value {
  readonly labels: Labels
  readonly value: number
  /** Of the parts of a histogram. */
  readonly metricName?: string
}

/**
 * A metric and its values as prom-client has them in JSON. It is made when Prometheus asks, from what was counted elsewhere: to
 * find a counter of prom-client by its labels takes longer than to count.
 */
export interface Metric {
  readonly name: string
  readonly help: string
  readonly type: 'counter' | 'gauge' | 'histogram'
  /** How the values of all processes become one. */
  readonly aggregator: Aggregator
  readonly values: readonly Value[]
}

export type Row<Counted> = readonly [labels: Labels, counted: Counted]

export function counter(
  name: string,
  help: string,
  rows: readonly Row<number>[],
  aggregator: Aggregator = 'sum',
): Metric {
  return { name, help, type: 'counter', aggregator, values: rows.map(plain) }
}

export function gauge(
  name: string,
  help: string,
  rows: readonly Row<number>[],
  aggregator: Aggregator = 'sum',
): Metric {
  return { name, help, type: 'gauge', aggregator, values: rows.map(plain) }
}

/** @param divisor of bounds and sums: 1000 where milliseconds were counted and seconds are told */
export function histogram(
  name: string,
  help: string,
  rows: readonly Row<HistogramCounts>[],
  divisor = 1,
): Metric {
  const values = rows.flatMap(([labels, { bounds, counts, sum }]) => {
    let below = 0
    const buckets = counts.map((count, i): Value => {
      below += count
      const le = i < bounds.length ? `${bounds[i]! / divisor}` : '+Inf'
      return { metricName: `${name}_bucket`, labels: { ...labels, le }, value: below }
    })
    return [
      ...buckets,
      { metricName: `${name}_sum`, labels, value: sum / divisor },
      { metricName: `${name}_count`, labels, value: below },
    ]
  })
  return { name, help, type: 'histogram', aggregator: 'sum', values }
}

function plain([labels, value]: Row<number>): Value {
  return { labels, value }
}
