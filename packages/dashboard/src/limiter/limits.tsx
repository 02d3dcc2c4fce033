// A limiter's limits, with their counts and a switch for shadow mode.

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
  /** `null` restores the configured mode. */
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
      ? [{ id: 'dimension', label: 'Dimension', cell: ({ dimension }: DeclaredLimit) => dimension }]
      : []),
    { id: 'words', label: 'Allows', cell: limitInWords },
    {
      id: 'mode',
      label: 'Mode',
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
      label: 'Average usage',
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
                  {shadow ? 'Enforce' : 'Make shadow'}
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
        empty="This limiter only has plans."
      />
      <p class="muted">
        The counts add up what each running instance has counted since it started. Denials of a shadow limit
        are requests that it would have denied. Nearly full: the share of requests that were admitted with at
        least 80% of the limit used.
      </p>
      <Plans limiter={limiter} />
      {change !== undefined && (
        <Confirm
          title={titleOf(change)}
          action={change.shadow === null ? 'Restore' : change.shadow ? 'Make shadow' : 'Enforce'}
          isDangerous={change.shadow === true}
          onClose={() => setChange(undefined)}
          onConfirm={async (reason) => {
            await request('POST', '/v1/admin/shadow', {
              ...reason,
              limiter: name,
              limit: change.limit,
              shadow: change.shadow,
            })
            reload()
          }}
        >
          <p>{consequenceOf(change)} All instances apply the change within a second.</p>
        </Confirm>
      )}
    </>
  )
}

/** The counts for a limiter's limits, by limit name. */
function useLimitCounts(limiter: string): ReadonlyMap<string, LimitTotals> {
  const { data } = useQuery<{ readonly limits: readonly LimitTotals[] }>(
    `/v1/admin/limiters/${encodeURIComponent(limiter)}/limits`,
    { everyMs: COUNTS_EVERY_MS },
  )
  return new Map(data?.limits.map((limit) => [limit.name, limit]))
}

/** The average usage of the limit when a request arrives. */
function Use({ counts }: { readonly counts: LimitTotals | undefined }) {
  const use = counts?.meanUtilization ?? null
  if (use === null) return <>{NONE}</>
  return (
    <span class="use">
      <UsageMeter share={use} label="Average usage" />
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
  if (shadow === null) return `Restore the configured mode for ${limit}?`
  return shadow ? `Make ${limit} a shadow limit?` : `Enforce ${limit}?`
}

function consequenceOf({ shadow }: Change): string {
  if (shadow === null) return 'Removes the operator’s setting.'
  return shadow
    ? 'The limit keeps counting, but no longer denies requests.'
    : 'Requests over the limit will be denied from now on.'
}

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
