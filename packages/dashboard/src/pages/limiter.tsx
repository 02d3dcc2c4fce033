import { Limits } from '../components/limiter/limits.tsx'
import { Overrides } from '../components/limiter/overrides.tsx'
import { Tail } from '../components/limiter/tail.tsx'
import { TopKeys } from '../components/limiter/top-keys.tsx'
import { UsageTable } from '../components/limiter/usage-table.tsx'
import { VerdictNotice } from '../components/limiter/verdict-notice.tsx'
import { PageHeader } from '../components/page-header.tsx'
import { RequestChart } from '../components/request-chart.tsx'
import { Stat, Stats } from '../components/stats.tsx'
import { Answered, Badge, Notice } from '../components/status.tsx'
import { compact, count, rate, ratio, share } from '../format.ts'
import { asked, useHistory, useLive } from '../live.tsx'
import { nameIn } from '../place.ts'
import type { LimiterTold, TopTold } from '../told.ts'
import { useAsk } from '../use-ask.ts'

const EVERY_MS = 3000
const SHOWN = 20

/** One limiter: what it limits, whom, and whether that is right. */
export function LimiterPage({ params }: { readonly params: { readonly name: string } }) {
  const name = nameIn(params.name)
  // Another limiter is another page, not this one with other numbers for a moment.
  return <OneLimiter key={name} name={name} />
}

function OneLimiter({ name }: { readonly name: string }) {
  const path = `/v1/admin/limiters/${encodeURIComponent(name)}`
  const limiters = useAsk<{ limiters: LimiterTold[] }>('/v1/admin/limiters', { everyMs: EVERY_MS })
  const requests = useAsk<TopTold>(`${path}/top?by=requests&count=${SHOWN}`, { everyMs: EVERY_MS })
  const denials = useAsk<TopTold>(`${path}/top?by=denials&count=${SHOWN}`, { everyMs: EVERY_MS })
  const history = useHistory(name)
  const told = limiters.data?.limiters.find((limiter) => limiter.name === name)
  // Of descriptors that Envoy has sent nothing can be asked.
  const hasPages = told !== undefined
  return (
    <>
      <PageHeader title={name} crumbs={[{ label: 'Overview', href: '#/' }]}>
        {told?.hashesKeys && <Badge>keys are stored as hashes</Badge>}
      </PageHeader>
      <Numbers name={name} />
      <VerdictNotice history={history} denials={denials.data} />
      <div class="panel">
        {history !== undefined && <RequestChart title="Requests per second" history={history} />}
        <UsageTable path={`${path}/usage`} />
      </div>
      <section class="panel" aria-labelledby="limits">
        <h2 id="limits">Limits</h2>
        <Answered asked={limiters}>
          {() =>
            told === undefined ? (
              <p class="muted">
                The configuration has no limiter of this name: it is a domain of Envoy, was taken out, or
                never was.
              </p>
            ) : (
              <Limits limiter={told} again={limiters.again} />
            )
          }
        </Answered>
      </section>
      <div class="columns">
        <TopKeys
          {...{ limiter: name, hasPages }}
          title="Who asks most"
          asked={requests}
          unit="Requests"
          showsUse
        />
        <TopKeys {...{ limiter: name, hasPages }} title="Who is denied most" asked={denials} unit="Denials" />
      </div>
      {told !== undefined && <Overrides limiter={told} />}
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
        <Stat name="Requests" value={rate(asked(rates))} />
        <Stat name="Denied" value={rate(deniedPerSecond)} tone={deniedPerSecond > 0 ? 'denied' : undefined} />
        <Stat name="Share denied" value={share(ratio(deniedPerSecond, asked(rates)))} />
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
