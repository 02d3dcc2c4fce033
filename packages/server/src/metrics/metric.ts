// Metrics that are built when Prometheus scrapes.

import type { Aggregator } from 'prom-client'
import type { HistogramCounts } from 'slidegate/metrics'

type Labels = Readonly<Record<string, string>>

interface Value {
  readonly labels: Labels
  readonly value: number
  /** Set for the parts of a histogram. */
  readonly metricName?: string
}

/**
 * A metric with its values, in prom-client's JSON format.
 *
 * Built from other counters at each scrape, because finding a prom-client counter by its labels is slow.
 */
export interface Metric {
  readonly name: string
  readonly help: string
  readonly type: 'counter' | 'gauge' | 'histogram'
  /** How the values from all processes are merged. */
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

/** @param divisor for bounds and sums: 1000 converts milliseconds to seconds */
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
