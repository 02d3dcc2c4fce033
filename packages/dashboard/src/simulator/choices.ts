// The kinds, limits and windows to choose from.

const SECOND = 1000
const MINUTE = 60 * SECOND
const HOUR = 60 * MINUTE

/** The steps of the limit slider. */
export const LIMIT_STEPS: readonly number[] = [
  ...range(1, 99, 1),
  ...range(100, 990, 10),
  ...range(1000, 10_000, 100),
]

/** The steps of the window slider, in milliseconds. */
export const WINDOW_STEPS: readonly number[] = [
  ...[1, 2, 5, 10, 15, 30].map((seconds) => seconds * SECOND),
  ...[1, 2, 5, 10, 15, 30].map((minutes) => minutes * MINUTE),
  ...[1, 2, 3, 6, 12, 24].map((hours) => hours * HOUR),
]

/** Returns the index of the largest step that doesn't exceed a number, or 0. */
export function stepOf(steps: readonly number[], number: number): number {
  return Math.max(
    0,
    steps.findLastIndex((step) => step <= number),
  )
}

function range(from: number, to: number, step: number): number[] {
  return Array.from({ length: (to - from) / step + 1 }, (_, i) => from + i * step)
}

/** The kinds to compare. */
export const KIND_NAMES = ['sliding', 'fixed', 'bucket', 'counter'] as const

export type KindName = (typeof KIND_NAMES)[number]

export const KIND_LABELS: Readonly<Record<KindName, string>> = {
  sliding: 'Sliding window',
  fixed: 'Fixed window',
  bucket: 'Token bucket',
  counter: 'Sliding counter',
}
