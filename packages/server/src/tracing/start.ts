import type { Config } from '../config/schema.ts'
import type { Tracing, TracingOptions } from './tracing.ts'

/** Starts tracing where there is to be any: only then is OpenTelemetry loaded. */
export async function startTracing(
  { tracing = false }: Config,
  options: Omit<TracingOptions, 'config'>,
): Promise<Tracing | undefined> {
  if (tracing === false) return undefined
  const { Tracing } = await import('./tracing.ts')
  return new Tracing({ ...options, config: tracing })
}
