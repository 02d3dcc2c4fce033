// The notice about a store outage, with the consequences for each limiter.

import type { LimiterRates } from '../../../server/src/admin/api-types.ts'
import { roundDuration, timeOfDay } from '../format.ts'
import { useLive } from '../live.tsx'
import { RunbookLink } from '../runbook/runbook-link.tsx'
import { Notice } from './status.tsx'

type Outage = NonNullable<LimiterRates['outage']>

/** Maximum number of limiters to name for each consequence. */
const NAMED = 8

/** Warns about a store outage and its consequences for each limiter. After an outage, shows when it happened. */
export function OutageNotice({ limiters }: { readonly limiters: readonly LimiterRates[] }) {
  const { overview } = useLive()
  const groups = new Map<string, { readonly outage: Outage; readonly names: string[] }>()
  for (const { name, outage } of limiters) {
    if (outage === undefined) continue
    const { sinceMs: _, ...consequence } = outage
    const known = groups.get(JSON.stringify(consequence))
    if (known === undefined) groups.set(JSON.stringify(consequence), { outage, names: [name] })
    else known.names.push(name)
  }
  // Uses the times of all limiters, because they detect an outage at different times.
  const all = overview?.limiters ?? limiters
  if (groups.size === 0) return limiters.some(hasRecovered) ? <LastOutage limiters={all} /> : null
  const isForAll = limiters.every(({ outage }) => outage !== undefined)
  const sinceMs = Math.min(...all.flatMap(({ outage }) => outage?.sinceMs ?? []))
  const { kind, servers = [] } = overview?.store ?? {}
  const isAlone = kind === 'redis' && servers.every(({ up }) => !up)
  return (
    <Notice tone="bad">
      <p>
        <b>The store is down</b>
        {Number.isFinite(sinceMs) && (
          <>
            {' '}
            since <Time ms={sinceMs} />
          </>
        )}
        . Until it responds:
      </p>
      <ul>
        {Array.from(groups, ([key, { outage, names }]) => (
          <li key={key}>
            <Names names={names} /> {consequenceOf(outage, names.length === 1)}
          </li>
        ))}
      </ul>
      {!isForAll && (
        <p>Other limiters can reach the store, or have had too few requests to notice the outage.</p>
      )}
      {isAlone && (
        <p>
          Instances see each other through Redis. Until Redis responds, this page only covers the instance
          that serves the page.
        </p>
      )}
      <RunbookLink alert={isAlone ? 'SlidegateRedisDown' : 'SlidegateStoreDown'} />
    </Notice>
  )
}

function hasRecovered({ lastOutage }: LimiterRates): boolean {
  return lastOutage !== undefined
}

function LastOutage({ limiters }: { readonly limiters: readonly LimiterRates[] }) {
  const outages = limiters.flatMap(({ lastOutage }) => lastOutage ?? [])
  const last = outages.toSorted((a, b) => b.untilMs - a.untilMs)[0]!
  const same = outages.filter((each) => each.untilMs >= last.sinceMs)
  const sinceMs = Math.min(...same.map((each) => each.sinceMs))
  const { untilMs } = last
  return (
    <Notice tone="good">
      <p>
        The store is responding again. It was down for {roundDuration(untilMs - sinceMs)}, from{' '}
        <Time ms={sinceMs} /> to <Time ms={untilMs} />.
      </p>
    </Notice>
  )
}

function Time({ ms }: { readonly ms: number }) {
  return <time dateTime={new Date(ms).toISOString()}>{timeOfDay(ms)}</time>
}

function Names({ names }: { readonly names: readonly string[] }) {
  return (
    <>
      {names.slice(0, NAMED).map((name, i) => (
        <span key={name}>
          {i > 0 && ', '}
          <code>{name}</code>
        </span>
      ))}
      {names.length > NAMED && ` and ${names.length - NAMED} others`}
    </>
  )
}

/** Describes the consequence of an outage: `denies everyone`, or for several limiters, `deny everyone`. */
export function consequenceOf(
  { onStoreError, instances, processesDown, processes }: Outage,
  isOne: boolean,
): string {
  const where = processesDown === processes ? '' : `, in ${processesDown} of ${processes} processes`
  const words = {
    deny: `${isOne ? 'denies' : 'deny'} everyone`,
    allow: `${isOne ? 'lets' : 'let'} everyone through, uncounted`,
    local: `${isOne ? 'enforces' : 'enforce'} ${SHARES[instances] ?? `1/${instances} of`} each limit in every process`,
    throw: `${isOne ? 'answers' : 'answer'} every request with an error (503)`,
  }
  return `${words[onStoreError]}${where}`
}

const SHARES: Readonly<Record<number, string>> = {
  1: 'all of',
  2: 'half of',
  3: 'a third of',
  4: 'a quarter of',
}
