// The public entry point slidegate/opentelemetry.
export { type MeasureOptions, measure } from './measure.ts'
export { type TracedOptions, traced } from './traced.ts'
