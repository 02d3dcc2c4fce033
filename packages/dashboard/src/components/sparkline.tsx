/** The course of a number in one glance; what it is now stands beside it. */
export function Sparkline({
  values,
  length,
}: {
  readonly values: readonly number[]
  readonly length: number
}) {
  const most = Math.max(1, ...values)
  const from = length - values.length
  const points = values.map((value, i) => `${from + i},${(20 - (18 * value) / most).toFixed(1)}`)
  return (
    <svg class="sparkline" viewBox={`0 0 ${length} 21`} preserveAspectRatio="none" aria-hidden="true">
      <polyline points={points.join(' ')} vector-effect="non-scaling-stroke" />
    </svg>
  )
}
