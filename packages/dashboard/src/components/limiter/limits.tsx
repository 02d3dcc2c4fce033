import { Fragment } from 'preact'
import { useState } from 'preact/hooks'
import type { LimitCountsTold } from '../../../../server/src/admin/overview.ts'
import { ask } from '../../api.ts'
import { count, NONE, ratio, share } from '../../format.ts'
import { useSession } from '../../session.tsx'
import { type LimiterTold, type LimitTold, limitInWords } from '../../told.ts'
import { useAsk } from '../../use-ask.ts'
import { Confirm } from '../dialog.tsx'
import { Badge } from '../status.tsx'
import { type Column, Table } from '../table.tsx'
import { UseMeter } from '../use-meter.tsx'

const COUNTS_EVERY_MS = 5000

interface Change {
  readonly limit: string
  /** `null`: as the configuration says. */
  readonly shadow: boolean | null
}

/** What keys are held to, and which of it decides. */
export function Limits({ limiter, again }: { readonly limiter: LimiterTold; readonly again: () => void }) {
  const { may } = useSession()
  const [change, setChange] = useState<Change>()
  const counts = useLimitCounts(limiter.name)
  const { name, shadowByWord } = limiter
  const countsOf = ({ dimension, name }: LimitTold) =>
    counts.get(dimension === undefined ? `${name}` : `${dimension}.${name}`)
  const columns: Column<LimitTold>[] = [
    { id: 'name', label: 'Limit', cell: ({ name }) => <span class="mono">{name}</span> },
    ...(limiter.limits.some(({ dimension }) => dimension !== undefined)
      ? [{ id: 'dimension', label: 'Counts by', cell: ({ dimension }: LimitTold) => dimension }]
      : []),
    { id: 'words', label: 'What it allows', cell: limitInWords },
    {
      id: 'mode',
      label: 'In force',
      cell: ({ name = '', shadow }) => {
        const word = shadowByWord[name] ?? shadowByWord['*']
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
      id: 'near',
      label: 'Nearly full',
      cell: (limit) => share(ratio(countsOf(limit)?.near ?? 0, countsOf(limit)?.requests ?? 0)),
      isNumber: true,
      isMinor: true,
    },
    ...(may('admin')
      ? [
          {
            id: 'change',
            label: 'Change',
            cell: ({ name: limit = '', shadow = false }: LimitTold) => (
              <div class="actions">
                <button type="button" class="small" onClick={() => setChange({ limit, shadow: !shadow })}>
                  {shadow ? 'Enforce' : 'Make it a shadow limit'}
                </button>
                {Object.hasOwn(shadowByWord, limit) && (
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
            await ask('POST', '/v1/admin/shadow', {
              limiter: name,
              limit: change.limit,
              shadow: change.shadow,
            })
            again()
          }}
        >
          <p>{consequenceOf(change)} It is in force within a second on all instances, and in the audit.</p>
        </Confirm>
      )}
    </>
  )
}

/** What the limits of a limiter have said, by the name of the limit. */
function useLimitCounts(limiter: string): ReadonlyMap<string, LimitCountsTold> {
  const { data } = useAsk<{ readonly limits: readonly LimitCountsTold[] }>(
    `/v1/admin/limiters/${encodeURIComponent(limiter)}/limits`,
    { everyMs: COUNTS_EVERY_MS },
  )
  return new Map(data?.limits.map((limit) => [limit.name, limit]))
}

/** How full callers are when they ask. */
function Use({ counts }: { readonly counts: LimitCountsTold | undefined }) {
  const use = counts?.meanUse ?? null
  if (use === null) return <>{NONE}</>
  return (
    <span class="use">
      <UseMeter share={use} label="Used on average" />
      {share(use)}
    </span>
  )
}

function Denials({
  limit,
  counts,
}: {
  readonly limit: LimitTold
  readonly counts: LimitCountsTold | undefined
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

function rowKeyOf({ dimension, name }: LimitTold): string {
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
function Plans({ limiter }: { readonly limiter: LimiterTold }) {
  const plans = Object.entries((limiter.config.plans ?? {}) as Record<string, Plan>)
  if (plans.length === 0) return null
  return (
    <>
      <h3>Plans</h3>
      <dl class="facts">
        {plans.map(([plan, told]) => (
          <Fragment key={plan}>
            <dt>{plan}</dt>
            <dd>{planInWords(told)}</dd>
          </Fragment>
        ))}
      </dl>
    </>
  )
}

interface Plan {
  readonly limits?: readonly LimitTold[]
  readonly dimensions?: Readonly<Record<string, readonly LimitTold[]>>
}

function planInWords({ limits = [], dimensions = {} }: Plan): string {
  const byDimension = Object.entries(dimensions).map(
    ([dimension, each]) => `${dimension}: ${each.map(limitInWords).join(', ')}`,
  )
  return [...limits.map(limitInWords), ...byDimension].join('; ')
}
