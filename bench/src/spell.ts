import { median } from './measure.ts'

/** Medians of what the turns gave, as notes spell them. */
export function inThousands(rates: readonly number[]): string {
  return `${(median(rates) / 1000).toFixed(1)}k`
}

export function inMicroseconds(seconds: readonly number[]): string {
  return `${(median(seconds) * 1e6).toFixed(2)} µs`
}
