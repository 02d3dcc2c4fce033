import type { History } from '../../../server/src/admin/overview.ts'
import { rate } from '../format.ts'
import { Chart } from './chart.tsx'

/** What was decided over the last minutes. */
export function RequestChart({ title, history }: { readonly title: string; readonly history: History }) {
  const { seconds, allowed, denied, shadowDenied } = history
  return (
    <Chart
      title={title}
      seconds={seconds}
      format={rate}
      series={[
        { label: 'Allowed', tone: 'allowed', values: allowed, isFilled: true },
        { label: 'Denied', tone: 'denied', values: denied },
        { label: 'Shadow denials', tone: 'shadow-denied', values: shadowDenied, isDashed: true },
      ]}
    />
  )
}
