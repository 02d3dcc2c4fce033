import type { Attributes, Meter } from '@opentelemetry/api'
import {
  type DataPoint,
  type Histogram,
  MeterProvider,
  type MetricData,
  MetricReader,
} from '@opentelemetry/sdk-metrics'

/** A reader that is asked by hand. */
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
    if (found.length !== 1) throw new Error(`there are ${found.length} of ${name}, not 1`)
    return found[0]!
  }

  /** The value of the only series with these attributes, among others; 0 where there is none. */
  value(name: string, attributes: Attributes = {}): number {
    const points = this.points(name, attributes)
    if (points.length > 1) throw new Error(`there are ${points.length} series of ${name}`)
    return (points[0]?.value as number | undefined) ?? 0
  }

  histogram(name: string, attributes: Attributes = {}): Histogram {
    const points = this.points(name, attributes)
    if (points.length !== 1) throw new Error(`there are ${points.length} series of ${name}`)
    return points[0]!.value as Histogram
  }

  points(name: string, attributes: Attributes = {}): DataPoint<unknown>[] {
    const points = this.metric(name).dataPoints as DataPoint<unknown>[]
    return points.filter((point) =>
      Object.entries(attributes).every(([key, value]) => point.attributes[key] === value),
    )
  }
}

/** A meter of the real SDK, and what it has collected. */
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
