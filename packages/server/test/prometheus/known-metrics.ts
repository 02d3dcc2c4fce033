import { Metrics } from '../../src/metrics/metrics.ts'

/** Names of metrics in a text, of the service and of its process, that the service does not expose. */
export async function unknownMetrics(text: string): Promise<string[]> {
  const known = new Set(await new Metrics().names())
  const named = new Set(text.match(/(?<![\w:])(slidegate|nodejs|process)_[a-z_0-9]+/g))
  if (named.size < 10) throw new Error('that cannot be all of it')
  return [...named].filter((name) => !known.has(name) && !known.has(name.replace(/_(bucket|sum|count)$/, '')))
}
