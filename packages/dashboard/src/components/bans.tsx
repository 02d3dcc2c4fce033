// The keys that are banned or blocked now, on the overview and on a limiter's page.

import { useState } from 'preact/hooks'
import { request } from '../api.ts'
import { type BanStatus, keyOf } from '../api-types.ts'
import { count, dateTime, duration, roundDuration } from '../format.ts'
import { useLive } from '../live.tsx'
import { limiterHref } from '../routes.ts'
import { useSession } from '../session.tsx'
import { useQuery } from '../use-query.ts'
import { Confirm } from './dialog.tsx'
import { KeyLink } from './key-link.tsx'
import { Badge, Loaded } from './status.tsx'
import { type Column, Table } from './table.tsx'

const EVERY_MS = 5000
const SHOWN = 100

/** @param limiter the limiter to show. Default: all limiters */
export function Bans({ limiter }: { readonly limiter?: string }) {
  const of = limiter === undefined ? '' : `&limiter=${encodeURIComponent(limiter)}`
  const query = useQuery<{ bans: BanStatus[]; isComplete: boolean }>(`/v1/admin/bans?count=${SHOWN}${of}`, {
    everyMs: EVERY_MS,
  })
  const { may } = useSession()
  const { overview } = useLive()
  const [lifted, setLifted] = useState<BanStatus>()
  const columns = columnsFor({
    hasLimiter: limiter === undefined,
    // Uses the service's clock, because the browser's clock may differ.
    nowMs: overview?.atMs ?? Date.now(),
    lift: may('admin') ? setLifted : undefined,
  })
  return (
    <section class="panel" aria-labelledby="bans">
      <h2 id="bans">Bans and blocks</h2>
      <Loaded query={query}>
        {({ bans, isComplete }) => (
          <>
            <Table
              label="Bans and blocks, sorted by end time, latest first"
              columns={columns}
              rows={bans}
              keyOf={({ limiter, dimension, key, type }) => JSON.stringify([limiter, dimension, key, type])}
              filterBy={({ limiter, key, who }) => `${key} ${limiter} ${who}`}
              filterLabel="Filter by key, limiter or operator"
              pageSize={10}
              empty="No keys are banned or blocked."
            />
            {!isComplete && (
              <p class="muted">
                Shows only the {count(bans.length)} that end last. <code>slidegate bans --count 1000</code>{' '}
                prints more.
              </p>
            )}
          </>
        )}
      </Loaded>
      {lifted !== undefined && (
        <Lift of={lifted} onDone={query.reload} onClose={() => setLifted(undefined)} />
      )}
    </section>
  )
}

interface ColumnOptions {
  readonly hasLimiter: boolean
  readonly nowMs: number
  readonly lift: ((ban: BanStatus) => void) | undefined
}

function columnsFor({ hasLimiter, nowMs, lift }: ColumnOptions): readonly Column<BanStatus>[] {
  return [
    {
      id: 'key',
      label: 'Key',
      cell: (ban) => <KeyLink limiter={ban.limiter} of={ban} hasPage={ban.isHashed !== true} />,
    },
    ...(hasLimiter
      ? [
          {
            id: 'limiter',
            label: 'Limiter',
            cell: ({ limiter }: BanStatus) => <a href={limiterHref(limiter)}>{limiter}</a>,
          },
        ]
      : []),
    { id: 'type', label: 'Type', cell: ({ type }) => <Badge tone="bad">{type}</Badge> },
    {
      id: 'until',
      label: 'Ends',
      cell: ({ untilMs }) =>
        untilMs === null ? (
          'never'
        ) : (
          <time dateTime={new Date(untilMs).toISOString()} title={dateTime(untilMs)}>
            in {roundDuration(Math.max(0, untilMs - nowMs))}
          </time>
        ),
    },
    { id: 'level', label: 'Level', cell: ({ level }) => count(level), isNumber: true, isMinor: true },
    { id: 'cause', label: 'Cause', cell: causeInWords, isMinor: true },
    { id: 'since', label: 'Since', cell: ({ sinceMs }) => dateTime(sinceMs), isMinor: true },
    ...(lift === undefined
      ? []
      : [
          {
            id: 'lift',
            label: 'Action',
            // A ban can't be lifted here if only a hash of its key is known.
            cell: (ban: BanStatus) =>
              ban.isHashed !== true && (
                <button
                  type="button"
                  class="small"
                  aria-label={`Unblock… ${ban.key}`}
                  onClick={() => lift(ban)}
                >
                  Unblock…
                </button>
              ),
          },
        ]),
  ]
}

function causeInWords({ who, limits, denials, withinMs, reason }: BanStatus): string {
  if (denials === undefined) return `by ${who}${reason === undefined ? '' : `: ${reason}`}`
  const by = limits === undefined ? '' : `, by ${limits.join(', ')}`
  return `${count(denials)} denials in ${duration(withinMs)}${by}`
}

function Lift({
  of,
  onDone,
  onClose,
}: {
  readonly of: BanStatus
  readonly onDone: () => void
  readonly onClose: () => void
}) {
  const { limiter, dimension, key, type } = of
  const body = { limiter, key: keyOf({ limiter, dimension, key }) }
  return (
    <Confirm
      title={`End this ${type}?`}
      action="Unblock"
      onConfirm={(reason) => request('POST', '/v1/admin/unblock', { ...body, ...reason }).finally(onDone)}
      onClose={onClose}
    >
      <p>
        Unblocks {dimension !== undefined && <span class="muted">{dimension} </span>}
        <code class="whom">{key}</code> in <b>{limiter}</b>, and forgets the key’s denials and earlier bans.
        Its usage and override are kept.
      </p>
    </Confirm>
  )
}
