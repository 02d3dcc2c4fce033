/** Units admitted at an instant. */
export interface Admission {
  readonly atMs: number
  readonly cost: number
}

/** The most units that any half-open stretch of this length holds, wherever it begins. */
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
