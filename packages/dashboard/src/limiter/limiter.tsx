// A limiter's page: its traffic, limits, keys and overrides.

import { useMemo } from 'preact/hooks'
import type { DeclaredLimiter, TopKeyList } from '../api-types.ts'
import { Bans } from '../components/bans.tsx'
import { OutageNotice } from '../components/outage.tsx'
import { PageHeader } from '../components/page-header.tsx'
import { Stat, Stats } from '../components/stats.tsx'
import { Badge, Loaded } from '../components/status.tsx'
import { Tail } from '../components/tail.tsx'
import { compact, count, duration, rate, ratio, share } from '../format.ts'
import { useHistory } from '../history.ts'
import { requestsPerSecond, useLive } from '../live.tsx'
import { decodeParameter } from '../routes.ts'
import { useQuery } from '../use-query.ts'
import { keyTraffic } from './key-traffic.ts'
import { KeysTable } from './keys-table.tsx'
import { Limits } from './limits.tsx'
import { Overrides } from './overrides.tsx'
import { Traffic } from './traffic.tsx'
import { evidenceOf, VerdictNotice } from './verdict.tsx'

const EVERY_MS = 3000
const KEYS_EVERY_MS = 5000
/** Maximum number of keys that the service lists. */
const LISTED = 1000

export function LimiterPage({ params }: { readonly params: { readonly name: string } }) {
  const name = decodeParameter(params.name)
  // A new component for each limiter, so that the previous limiter's numbers aren't shown.
  return <OneLimiter key={name} name={name} />
}

function OneLimiter({ name }: { readonly name: string }) {
  const path = `/v1/admin/limiters/${encodeURIComponent(name)}`
  const limiters = useQuery<{ limiters: DeclaredLimiter[] }>('/v1/admin/limiters', { everyMs: EVERY_MS })
  const requests = useQuery<TopKeyList>(`${path}/top?by=requests&count=${LISTED}`, { everyMs: KEYS_EVERY_MS })
  const denials = useQuery<TopKeyList>(`${path}/top?by=denials&count=${LISTED}`, { everyMs: KEYS_EVERY_MS })
  const history = useHistory(name)
  const declared = limiters.data?.limiters.find((limiter) => limiter.name === name)
  // An Envoy domain isn't declared as a limiter, and its keys can't be looked up.
  const hasPages = declared !== undefined
  const keys = useMemo(() => {
    // Waits for the limits, because the demand depends on them.
    if (!requests.data || !denials.data || !limiters.data) return undefined
    return keyTraffic(requests.data, denials.data, declared?.limits ?? [])
  }, [requests.data, denials.data, limiters.data === undefined])
  // Computed again only when new keys arrive, although `history` changes every second.
  const evidence = useMemo(
    () => history && keys && requests.data && evidenceOf(history, requests.data, keys, KEYS_EVERY_MS),
    [keys, history === undefined],
  )
  const { spanMs = 0, distinct = 0 } = requests.data ?? {}
  return (
    <>
      <PageHeader title={name} crumbs={[{ label: 'Overview', href: '#/' }]}>
        {declared?.hashesKeys && <Badge>keys are stored as hashes</Badge>}
      </PageHeader>
      <Numbers name={name} />
      {evidence !== undefined && <VerdictNotice {...{ limiter: name, hasPages, evidence }} />}
      <Traffic limiter={name} history={history} hasPages={hasPages} />
      <section class="panel" aria-labelledby="limits">
        <h2 id="limits">Limits</h2>
        <Loaded query={limiters}>
          {() =>
            declared === undefined ? (
              <p class="muted">
                The configuration has no limiter with this name. It may be an Envoy domain, or it may have
                been removed.
              </p>
            ) : (
              <Limits limiter={declared} reload={limiters.reload} />
            )
          }
        </Loaded>
      </section>
      <section class="panel" aria-labelledby="keys">
        <div class="panel-head">
          <h2 id="keys">Keys</h2>
          <span class="muted">
            {spanMs > 0 && `last ${duration(Math.ceil(spanMs / 1000) * 1000)}, `}
            {`≈ ${compact(distinct)} ${distinct === 1 ? 'caller' : 'callers'}`}
          </span>
        </div>
        <Loaded query={requests.error === undefined ? denials : requests}>
          {() => keys !== undefined && <KeysTable {...{ limiter: name, hasPages, keys }} />}
        </Loaded>
      </section>
      {declared !== undefined && <Bans limiter={name} />}
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
      <OutageNotice limiters={[rates]} />
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
