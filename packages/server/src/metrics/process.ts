import { collectDefaultMetrics, Registry } from 'prom-client'
import type { Metric } from './metric.ts'

/** Called like counters, and gauges: prom-client has each under a right name, too. */
const MISNAMED = [
  'nodejs_active_handles_total',
  'nodejs_active_requests_total',
  'nodejs_active_resources_total',
]

let registry: Registry | undefined

/** From now on it is measured how late the event loop is, and what else takes its time. */
export function measureProcess(): Registry {
  registry ??= measured()
  return registry
}

/** What prom-client tells of this process: what it needs, and how late its event loop is. */
export async function processMetrics(): Promise<Metric[]> {
  const metrics = (await measureProcess().getMetricsAsJSON()) as unknown as Metric[]
  // Of several processes that of the youngest: one that was replaced shows.
  return metrics.map((metric) =>
    metric.name === 'process_start_time_seconds' ? { ...metric, aggregator: 'max' } : metric,
  )
}

function measured(): Registry {
  const made = new Registry()
  collectDefaultMetrics({ register: made })
  for (const name of MISNAMED) made.removeSingleMetric(name)
  return made
}
