import { Metrics } from '../../src/metrics/metrics.ts'

/** Returns the metric names in a text that the service doesn't expose. */
export async function unknownMetrics(text: string): Promise<string[]> {
  const known = new Set(await new Metrics().names())
  const named = new Set(text.match(/(?<![\w:])(slidegate|nodejs|process)_[a-z_0-9]+/g))
  if (named.size < 10) throw new Error('too few metrics found')
  return [...named].filter((name) => !known.has(name) && !known.has(name.replace(/_(bucket|sum|count)$/, '')))
}
