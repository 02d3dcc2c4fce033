import { median } from './measure.ts'

/** Formats the median of rates for notes. */
export function inThousands(rates: readonly number[]): string {
  return `${(median(rates) / 1000).toFixed(1)}k`
}

export function inMicroseconds(seconds: readonly number[]): string {
  return `${(median(seconds) * 1e6).toFixed(2)} µs`
}
