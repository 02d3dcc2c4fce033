// The limits of a limiter, with their counts and a switch for shadow limits.

import { Fragment } from 'preact'
import { useState } from 'preact/hooks'
import type { LimitTotals } from '../../../server/src/admin/api-types.ts'
import { request } from '../api.ts'
import type { DeclaredLimit, DeclaredLimiter } from '../api-types.ts'
import { Confirm } from '../components/dialog.tsx'
import { UsageMeter } from '../components/stats.tsx'
import { Badge } from '../components/status.tsx'
import { type Column, Table } from '../components/table.tsx'
import { count, limitInWords, NONE, ratio, share } from '../format.ts'
import { useSession } from '../session.tsx'
import { useQuery } from '../use-query.ts'

const COUNTS_EVERY_MS = 5000

interface Change {
  readonly limit: string
  /** `null`: as the configuration says. */
  readonly shadow: boolean | null
}

export function Limits({
  limiter,
  reload,
}: {
  readonly limiter: DeclaredLimiter
  readonly reload: () => void
}) {
  const { may } = useSession()
  const [change, setChange] = useState<Change>()
  const counts = useLimitCounts(limiter.name)
  const { name, shadowSettings } = limiter
  const countsOf = ({ dimension, name }: DeclaredLimit) =>
    counts.get(dimension === undefined ? `${name}` : `${dimension}.${name}`)
  const columns: Column<DeclaredLimit>[] = [
    { id: 'name', label: 'Limit', cell: ({ name }) => <span class="mono">{name}</span> },
    ...(limiter.limits.some(({ dimension }) => dimension !== undefined)
      ? [{ id: 'dimension', label: 'Counts by', cell: ({ dimension }: DeclaredLimit) => dimension }]
      : []),
    { id: 'words', label: 'What it allows', cell: limitInWords },
    {
      id: 'mode',
      label: 'In force',
      cell: ({ name = '', shadow }) => {
        const word = shadowSettings[name] ?? shadowSettings['*']
        return (
          <>
            {shadow ? <Badge tone="warn">shadow</Badge> : <Badge tone="good">enforced</Badge>}
            {word !== undefined && <span class="muted"> by an operator</span>}
          </>
        )
      },
    },
    {
      id: 'denials',
      label: 'Denials',
      cell: (limit) => <Denials limit={limit} counts={countsOf(limit)} />,
      isNumber: true,
    },
    {
      id: 'use',
      label: 'Used on average',
      cell: (limit) => <Use counts={countsOf(limit)} />,
      isMinor: true,
    },
    {
      id: 'nearLimit',
      label: 'Nearly full',
      cell: (limit) => share(ratio(countsOf(limit)?.nearLimit ?? 0, countsOf(limit)?.requests ?? 0)),
      isNumber: true,
      isMinor: true,
    },
    ...(may('admin')
      ? [
          {
            id: 'change',
            label: 'Change',
            cell: ({ name: limit = '', shadow = false }: DeclaredLimit) => (
              <div class="actions">
                <button type="button" class="small" onClick={() => setChange({ limit, shadow: !shadow })}>
                  {shadow ? 'Enforce' : 'Make it a shadow limit'}
                </button>
                {Object.hasOwn(shadowSettings, limit) && (
                  <button type="button" class="small" onClick={() => setChange({ limit, shadow: null })}>
                    As configured
                  </button>
                )}
              </div>
            ),
          },
        ]
      : []),
  ]
  return (
    <>
      <Table
        label="Limits"
        columns={columns}
        rows={limiter.limits}
        keyOf={rowKeyOf}
        empty="It has plans only."
      />
      <p class="muted">
        Counted by all instances, each since it has started. Denials of a shadow limit are those that it would
        have made. Nearly full: requests that were admitted with 80% of the limit used, or more.
      </p>
      <Plans limiter={limiter} />
      {change !== undefined && (
        <Confirm
          title={titleOf(change)}
          action={
            change.shadow === null ? 'Take it back' : change.shadow ? 'Make it a shadow limit' : 'Enforce'
          }
          isDangerous={change.shadow === true}
          onClose={() => setChange(undefined)}
          onConfirm={async () => {
            await request('POST', '/v1/admin/shadow', {
              limiter: name,
              limit: change.limit,
              shadow: change.shadow,
            })
            reload()
          }}
        >
          <p>{consequenceOf(change)} It is in force within a second on all instances, and in the audit.</p>
        </Confirm>
      )}
    </>
  )
}

/** What the limits of a limiter have said, by the name of the limit. */
function useLimitCounts(limiter: string): ReadonlyMap<string, LimitTotals> {
  const { data } = useQuery<{ readonly limits: readonly LimitTotals[] }>(
    `/v1/admin/limiters/${encodeURIComponent(limiter)}/limits`,
    { everyMs: COUNTS_EVERY_MS },
  )
  return new Map(data?.limits.map((limit) => [limit.name, limit]))
}

/** How full callers are when they ask. */
function Use({ counts }: { readonly counts: LimitTotals | undefined }) {
  const use = counts?.meanUtilization ?? null
  if (use === null) return <>{NONE}</>
  return (
    <span class="use">
      <UsageMeter share={use} label="Used on average" />
      {share(use)}
    </span>
  )
}

function Denials({
  limit,
  counts,
}: {
  readonly limit: DeclaredLimit
  readonly counts: LimitTotals | undefined
}) {
  if (counts === undefined) return <>{NONE}</>
  const { requests, denials, shadowDenials } = counts
  const made = limit.shadow ? shadowDenials : denials
  return (
    <span class={limit.shadow ? 'shadow-denied' : undefined}>
      {count(made)} ({share(ratio(made, requests))})
    </span>
  )
}

function rowKeyOf({ dimension, name }: DeclaredLimit): string {
  return `${dimension}/${name}`
}

function titleOf({ limit, shadow }: Change): string {
  if (shadow === null) return `${limit} as the configuration says?`
  return shadow ? `Make ${limit} a shadow limit?` : `Enforce ${limit}?`
}

function consequenceOf({ shadow }: Change): string {
  if (shadow === null) return 'What an operator has said of this limit is taken back.'
  return shadow
    ? 'It goes on to count, and denies nobody any more.'
    : 'It denies what it has no room for from then on.'
}

/** Limits in place of the usual ones, for keys that have a plan. */
function Plans({ limiter }: { readonly limiter: DeclaredLimiter }) {
  const plans = Object.entries((limiter.config.plans ?? {}) as Record<string, Plan>)
  if (plans.length === 0) return null
  return (
    <>
      <h3>Plans</h3>
      <dl class="facts">
        {plans.map(([name, plan]) => (
          <Fragment key={name}>
            <dt>{name}</dt>
            <dd>{planInWords(plan)}</dd>
          </Fragment>
        ))}
      </dl>
    </>
  )
}

interface Plan {
  readonly limits?: readonly DeclaredLimit[]
  readonly dimensions?: Readonly<Record<string, readonly DeclaredLimit[]>>
}

function planInWords({ limits = [], dimensions = {} }: Plan): string {
  const byDimension = Object.entries(dimensions).map(
    ([dimension, each]) => `${dimension}: ${each.map(limitInWords).join(', ')}`,
  )
  return [...limits.map(limitInWords), ...byDimension].join('; ')
}
