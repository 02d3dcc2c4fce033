// The notice of an outage of the store, with its consequences for each limiter.

import type { LimiterRates } from '../../../server/src/admin/api-types.ts'
import { RunbookLink } from '../runbook/runbook-link.tsx'
import { Notice } from './status.tsx'

type Outage = NonNullable<LimiterRates['outage']>

/** Maximum number of limiters named per consequence. */
const NAMED = 8

/** Warns that the store is down, with the consequences for each limiter. */
export function OutageNotice({ limiters }: { readonly limiters: readonly LimiterRates[] }) {
  const groups = new Map<string, { readonly outage: Outage; readonly names: string[] }>()
  for (const { name, outage } of limiters) {
    if (outage === undefined) continue
    const known = groups.get(JSON.stringify(outage))
    if (known === undefined) groups.set(JSON.stringify(outage), { outage, names: [name] })
    else known.names.push(name)
  }
  if (groups.size === 0) return null
  const isForAll = limiters.every(({ outage }) => outage !== undefined)
  return (
    <Notice tone="bad">
      <p>
        <b>The store is down.</b> Until it responds:
      </p>
      <ul>
        {Array.from(groups, ([key, { outage, names }]) => (
          <li key={key}>
            <Names names={names} /> {consequenceOf(outage, names.length === 1)}
          </li>
        ))}
      </ul>
      {!isForAll && <p>Other limiters reach the store, or had too few requests to notice.</p>}
      <RunbookLink alert="SlidegateStoreDown" />
    </Notice>
  )
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

/** `denies everyone`, or for several limiters, `deny everyone` */
export function consequenceOf(
  { onStoreError, instances, processesDown, processes }: Outage,
  isOne: boolean,
): string {
  const where = processesDown === processes ? '' : `, in ${processesDown} of ${processes} processes`
  const its = isOne ? 'its' : 'their'
  const words = {
    deny: `${isOne ? 'denies' : 'deny'} everyone`,
    allow: `${isOne ? 'lets' : 'let'} everyone through, uncounted`,
    local: `${isOne ? 'enforces' : 'enforce'} ${SHARES[instances] ?? `1/${instances} of`} ${its} limits in each process`,
    throw: `${isOne ? 'answers' : 'answer'} every request with an error (503)`,
  }
  return `${words[onStoreError]}${where}`
}

const SHARES: Readonly<Record<number, string>> = {
  1: 'all of',
  2: 'half',
  3: 'a third of',
  4: 'a quarter of',
}
