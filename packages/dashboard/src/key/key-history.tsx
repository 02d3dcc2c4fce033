// A key's requests and its share of each limit, over an hour or a week.

import { useState } from 'preact/hooks'
import { request } from '../api.ts'
import { type ExplainedLimit, keyOf, type OneKey } from '../api-types.ts'
import { Chart, type ChartSeries } from '../components/chart.tsx'
import { RangeSwitch } from '../components/range-switch.tsx'
import { type LongRange, SeriesCharts, useSeries } from '../components/series-chart.tsx'
import { Loaded, sentenceOf } from '../components/status.tsx'
import { share } from '../format.ts'
import { useSession } from '../session.tsx'
import { sharesOf } from './shares.ts'

/** The colors of the limits' lines. Any further limits aren't shown. */
const TONES = ['accent', 'shadow-denied', 'muted', 'denied', 'allowed'] as const

export function KeyHistory({
  of,
  limits,
}: {
  readonly of: OneKey
  readonly limits: readonly ExplainedLimit[]
}) {
  const [range, setRange] = useState<LongRange>('1h')
  const query = useSeries(of.limiter, range, of)
  return (
    <section class="panel" aria-labelledby="history">
      <div class="panel-head">
        <h2 id="history">History</h2>
        <div class="actions">
          <Watch of={of} isWatched={query.data?.isWatched} onDone={query.reload} />
          <RangeSwitch ranges={['1h', '7d']} range={range} onChange={(next) => setRange(next as LongRange)} />
        </div>
      </div>
      <Loaded query={query}>
        {(series) => {
          const lines = limits.flatMap((limit) => {
            const values = sharesOf(series, limit)
            return values === undefined ? [] : [{ label: limit.name, values, isDashed: limit.shadow }]
          })
          const toned = lines
            .slice(0, TONES.length)
            .map((line, i): ChartSeries => ({ ...line, tone: TONES[i]! }))
          return (
            <>
              <SeriesCharts series={series} />
              {toned.length > 0 && (
                <Chart
                  title="Share of each limit used"
                  seconds={series.seconds}
                  stepSeconds={series.stepSeconds}
                  series={toned}
                  format={share}
                />
              )}
            </>
          )
        }}
      </Loaded>
    </section>
  )
}

/** The button to watch the key, so that its history is complete from now on. */
function Watch({
  of,
  isWatched,
  onDone,
}: {
  readonly of: OneKey
  readonly isWatched: boolean | undefined
  readonly onDone: () => void
}) {
  const { may } = useSession()
  const [error, setError] = useState<Error>()
  if (isWatched === undefined || !may('admin')) return null
  const toggle = (): void => {
    const body = { limiter: of.limiter, key: keyOf(of), watch: !isWatched }
    request('POST', '/v1/admin/watch', body)
      .then(() => setError(undefined), setError)
      .finally(onDone)
  }
  return (
    <>
      {error !== undefined && <span role="alert">{sentenceOf(error)}</span>}
      <button
        type="button"
        class="small"
        title="Keeps this key in the history for a week, however rare its requests are."
        onClick={toggle}
      >
        {isWatched ? 'Stop watching' : 'Watch'}
      </button>
    </>
  )
}
