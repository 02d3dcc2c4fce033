/** Units admitted at one time. */
export interface Admission {
  readonly atMs: number
  readonly cost: number
}

/**
 * Returns the median time until this many more units were admitted. Unlike the emptiest window, the median is hardly affected if
 * the machine hangs.
 */
export function medianMsFor(admissions: readonly Admission[], units: number): number {
  const inOrder = [...admissions].sort((a, b) => a.atMs - b.atMs)
  const tookMs: number[] = []
  let [more, end] = [0, 0]
  for (const { atMs, cost } of inOrder) {
    for (; end < inOrder.length && more < units + cost; end++) more += inOrder[end]!.cost
    if (more < units + cost) break
    tookMs.push(inOrder[end - 1]!.atMs - atMs)
    more -= cost
  }
  return tookMs.sort((a, b) => a - b)[tookMs.length >> 1] ?? Number.POSITIVE_INFINITY
}

/** Returns the most units in any half-open interval of this length, wherever it starts. */
export function fullestWindow(admissions: readonly Admission[], windowMs: number): number {
  const inOrder = [...admissions].sort((a, b) => a.atMs - b.atMs)
  let fullest = 0
  let units = 0
  let oldest = 0
  for (const { atMs, cost } of inOrder) {
    units += cost
    for (; inOrder[oldest]!.atMs <= atMs - windowMs; oldest++) units -= inOrder[oldest]!.cost
    fullest = Math.max(fullest, units)
  }
  return fullest
}
