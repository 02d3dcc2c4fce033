import type { Attributes, Meter } from '@opentelemetry/api'
import {
  type DataPoint,
  type Histogram,
  MeterProvider,
  type MetricData,
  MetricReader,
} from '@opentelemetry/sdk-metrics'

/** A reader that collects on demand. */
class Reader extends MetricReader {
  protected override async onShutdown(): Promise<void> {}
  protected override async onForceFlush(): Promise<void> {}
}

const PREFIX = 'slidegate.rate_limiting.'

/** Metrics as the SDK collects them. */
export class Collected {
  readonly metrics: readonly MetricData[]

  constructor(metrics: readonly MetricData[]) {
    this.metrics = metrics
  }

  get names(): string[] {
    return this.metrics.map(({ descriptor }) => descriptor.name.replace(PREFIX, '')).sort()
  }

  metric(name: string): MetricData {
    const found = this.metrics.filter(({ descriptor }) => descriptor.name === PREFIX + name)
    if (found.length !== 1) throw new Error(`found ${found.length} metrics named ${name}, expected 1`)
    return found[0]!
  }

  /** Returns the value of the only series with at least these attributes, or 0. */
  value(name: string, attributes: Attributes = {}): number {
    const points = this.points(name, attributes)
    if (points.length > 1) throw new Error(`found ${points.length} series of ${name}, expected 1`)
    return (points[0]?.value as number | undefined) ?? 0
  }

  histogram(name: string, attributes: Attributes = {}): Histogram {
    const points = this.points(name, attributes)
    if (points.length !== 1) throw new Error(`found ${points.length} series of ${name}, expected 1`)
    return points[0]!.value as Histogram
  }

  points(name: string, attributes: Attributes = {}): DataPoint<unknown>[] {
    const points = this.metric(name).dataPoints as DataPoint<unknown>[]
    return points.filter((point) =>
      Object.entries(attributes).every(([key, value]) => point.attributes[key] === value),
    )
  }
}

/** Returns a meter of the real SDK, and a function that collects its metrics. */
export function meterOf(): { readonly meter: Meter; collect(): Promise<Collected> } {
  const reader = new Reader()
  const provider = new MeterProvider({ readers: [reader] })
  return {
    meter: provider.getMeter('test'),
    async collect() {
      const { resourceMetrics, errors } = await reader.collect()
      if (errors.length > 0) throw errors[0]
      return new Collected(resourceMetrics.scopeMetrics.flatMap(({ metrics }) => metrics))
    },
  }
}
