// The page of a limiter: its traffic, limits, top keys and overrides.

import type { DeclaredLimiter, TopKeyList } from '../api-types.ts'
import { RequestChart } from '../components/chart.tsx'
import { PageHeader } from '../components/page-header.tsx'
import { Stat, Stats } from '../components/stats.tsx'
import { Badge, Loaded, Notice } from '../components/status.tsx'
import { Tail } from '../components/tail.tsx'
import { compact, count, rate, ratio, share } from '../format.ts'
import { useHistory } from '../history.ts'
import { requestsPerSecond, useLive } from '../live.tsx'
import { decodeParameter } from '../routes.ts'
import { useQuery } from '../use-query.ts'
import { Limits } from './limits.tsx'
import { Overrides } from './overrides.tsx'
import { TopKeys } from './top-keys.tsx'
import { UsageTable } from './usage-table.tsx'
import { VerdictNotice } from './verdict.tsx'

const EVERY_MS = 3000
const SHOWN = 20

export function LimiterPage({ params }: { readonly params: { readonly name: string } }) {
  const name = decodeParameter(params.name)
  // Another limiter is another page, not this one with other numbers for a moment.
  return <OneLimiter key={name} name={name} />
}

function OneLimiter({ name }: { readonly name: string }) {
  const path = `/v1/admin/limiters/${encodeURIComponent(name)}`
  const limiters = useQuery<{ limiters: DeclaredLimiter[] }>('/v1/admin/limiters', { everyMs: EVERY_MS })
  const requests = useQuery<TopKeyList>(`${path}/top?by=requests&count=${SHOWN}`, { everyMs: EVERY_MS })
  const denials = useQuery<TopKeyList>(`${path}/top?by=denials&count=${SHOWN}`, { everyMs: EVERY_MS })
  const history = useHistory(name)
  const declared = limiters.data?.limiters.find((limiter) => limiter.name === name)
  // Of descriptors that Envoy has sent nothing can be asked.
  const hasPages = declared !== undefined
  return (
    <>
      <PageHeader title={name} crumbs={[{ label: 'Overview', href: '#/' }]}>
        {declared?.hashesKeys && <Badge>keys are stored as hashes</Badge>}
      </PageHeader>
      <Numbers name={name} />
      <VerdictNotice history={history} denials={denials.data} />
      <div class="panel">
        {history !== undefined && <RequestChart title="Requests per second" history={history} />}
        <UsageTable path={`${path}/usage`} />
      </div>
      <section class="panel" aria-labelledby="limits">
        <h2 id="limits">Limits</h2>
        <Loaded query={limiters}>
          {() =>
            declared === undefined ? (
              <p class="muted">
                The configuration has no limiter of this name: it is a domain of Envoy, was taken out, or
                never was.
              </p>
            ) : (
              <Limits limiter={declared} reload={limiters.reload} />
            )
          }
        </Loaded>
      </section>
      <div class="columns">
        <TopKeys
          {...{ limiter: name, hasPages }}
          title="Who asks most"
          query={requests}
          unit="Requests"
          showsUse
        />
        <TopKeys {...{ limiter: name, hasPages }} title="Who is denied most" query={denials} unit="Denials" />
      </div>
      {declared !== undefined && <Overrides limiter={declared} />}
      <Tail limiter={name} hasPages={hasPages} />
    </>
  )
}

function Numbers({ name }: { readonly name: string }) {
  const { overview } = useLive()
  const rates = overview?.limiters.find((limiter) => limiter.name === name)
  if (rates === undefined) return null
  const { deniedPerSecond, shadowDeniedPerSecond, callers, waiting } = rates
  return (
    <>
      {rates.isStoreDown && (
        <Notice tone="bad">
          <p>
            The store gives no answer: requests are answered without it, as <code>onStoreError</code> says.
          </p>
        </Notice>
      )}
      <Stats label="In the last second">
        <Stat name="Requests" value={rate(requestsPerSecond(rates))} />
        <Stat name="Denied" value={rate(deniedPerSecond)} tone={deniedPerSecond > 0 ? 'denied' : undefined} />
        <Stat name="Share denied" value={share(ratio(deniedPerSecond, requestsPerSecond(rates)))} />
        <Stat
          name="Shadow denials"
          value={rate(shadowDeniedPerSecond)}
          tone={shadowDeniedPerSecond > 0 ? 'shadow-denied' : undefined}
        />
        <Stat name="Callers" value={`≈ ${compact(callers)}`} />
        <Stat name="Waiting" value={count(waiting)} />
      </Stats>
    </>
  )
}
