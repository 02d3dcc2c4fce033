// The overview page: all limiters, instances and the store at a glance.

import type { History, LimiterRates, Overview, StoreStatus } from '../../../server/src/admin/api-types.ts'
import { Bans } from '../components/bans.tsx'
import { Chart, RequestChart } from '../components/chart.tsx'
import { OutageNotice } from '../components/outage.tsx'
import { PageHeader } from '../components/page-header.tsx'
import { Stat, Stats } from '../components/stats.tsx'
import { Notice } from '../components/status.tsx'
import { count, duration, rate, ratio, share, timeOfDay } from '../format.ts'
import { useHistory } from '../history.ts'
import { useLive } from '../live.tsx'
import { RunbookLink } from '../runbook/runbook-link.tsx'
import { FirstRequest } from './first-request.tsx'
import { LimiterTable } from './limiter-table.tsx'
import { Servers } from './servers.tsx'

export function OverviewPage() {
  const { overview, latency } = useLive()
  const history = useHistory()
  return (
    <>
      <PageHeader title="Overview" />
      {overview === undefined ? (
        <p class="muted">Loading…</p>
      ) : (
        <>
          <Warnings overview={overview} />
          {isUnused(history) && <FirstRequest />}
          <Numbers overview={overview} />
          <div class="columns">
            <div class="panel">
              {history !== undefined && <RequestChart title="Requests per second" history={history} />}
            </div>
            {/* Latency is shown only for Redis: calls to a store in the same process take almost no time. */}
            {overview.store.kind === 'redis' && (
              <div class="panel">
                <Chart
                  title="Store latency"
                  seconds={latency.seconds}
                  format={duration}
                  series={[
                    { label: 'p99', tone: 'accent', values: latency.p99, isFilled: true },
                    { label: 'p50', tone: 'muted', values: latency.p50, isDashed: true },
                  ]}
                />
              </div>
            )}
          </div>
          <section class="panel" aria-labelledby="limiters">
            <div class="panel-head">
              <h2 id="limiters">Limiters</h2>
              <span class="muted">averages over the last minute</span>
            </div>
            <LimiterTable limiters={overview.limiters} />
          </section>
          <Bans />
          <Servers overview={overview} />
        </>
      )}
    </>
  )
}

/** Whether there were no requests in the last few minutes. */
function isUnused(history: History | undefined): boolean {
  return history !== undefined && [...history.allowed, ...history.denied].every((count) => count === 0)
}

function Warnings({ overview: { instances, gone, missing, limiters } }: { readonly overview: Overview }) {
  return (
    <>
      <OutageNotice limiters={limiters} />
      <FileNotice instances={instances} state="invalid" />
      <FileNotice instances={instances} state="restart" />
      {gone.length > 0 && (
        <Notice tone="warn">
          <p>
            {gone.length === 1 ? 'An instance has' : `${gone.length} instances have`} disappeared without
            shutting down:{' '}
            {gone
              .map(({ host, pid, goneSinceMs }) => `${host}/${pid} at ${timeOfDay(goneSinceMs)}`)
              .join(', ')}
            .
          </p>
          <RunbookLink alert="SlidegateInstanceDown" />
        </Notice>
      )}
      {missing > 0 && (
        <Notice tone="warn">
          <p>
            {missing === 1 ? 'One instance has' : `${missing} instances have`} not responded. The numbers
            don’t include {missing === 1 ? 'it' : 'them'}.
          </p>
          <RunbookLink alert="SlidegateInstanceDown" />
        </Notice>
      )}
    </>
  )
}

/** Warns about configuration files that are invalid, or take full effect only after a restart. */
function FileNotice({
  instances,
  state,
}: {
  readonly instances: Overview['instances']
  readonly state: 'invalid' | 'restart'
}) {
  const names = instances
    .filter(({ configuration }) => configuration === state)
    .map(({ host, pid }) => `${host}/${pid}`)
  if (names.length === 0) return null
  return (
    <Notice tone="warn">
      {state === 'invalid' ? (
        <>
          <p>
            The configuration file of {names.join(', ')} is invalid. The previous configuration stays in
            force, but a restart would fail. <a href="#/configuration">See the problems</a>
          </p>
          <RunbookLink alert="SlidegateConfigInvalid" />
        </>
      ) : (
        <p>
          Some changes to the configuration file of {names.join(', ')} take effect at the next start, because
          they concern the listeners, store, caps or tracing.
        </p>
      )}
    </Notice>
  )
}

function Numbers({ overview: { limiters, store, instances } }: { readonly overview: Overview }) {
  const sum = (of: (limiter: LimiterRates) => number) =>
    limiters.reduce((all, limiter) => all + of(limiter), 0)
  const allowed = sum(({ allowedPerSecond }) => allowedPerSecond)
  const denied = sum(({ deniedPerSecond }) => deniedPerSecond)
  const shadowed = sum(({ shadowDeniedPerSecond }) => shadowDeniedPerSecond)
  const withoutStore = sum(({ withoutStorePerSecond }) => withoutStorePerSecond)
  const waiting = sum((limiter) => limiter.waiting)
  return (
    <Stats label="In the last second">
      <Stat name="Requests" value={rate(allowed + denied)} />
      <Stat name="Denied" value={rate(denied)} tone={denied > 0 ? 'denied' : undefined} />
      <Stat name="Share denied" value={share(ratio(denied, allowed + denied))} />
      <Stat name="Shadow denials" value={rate(shadowed)} tone={shadowed > 0 ? 'shadow-denied' : undefined} />
      {waiting > 0 && <Stat name="Waiting" value={count(waiting)} />}
      {withoutStore > 0 && <Stat name="Without the store" value={rate(withoutStore)} tone="denied" />}
      <StoreStats store={store} />
      <Stat name="Instances" value={count(instances.length)} />
    </Stats>
  )
}

function StoreStats({ store: { kind, up, callMs } }: { readonly store: StoreStatus }) {
  if (!up) return <Stat name="Store" value="down" tone="denied" />
  if (kind === 'memory') return <Stat name="Store" value="memory" />
  return (
    <>
      <Stat name="Store p50" value={duration(callMs?.p50)} />
      <Stat name="Store p99" value={duration(callMs?.p99)} />
    </>
  )
}
