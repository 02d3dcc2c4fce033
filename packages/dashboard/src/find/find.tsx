// The page that finds a key in all limiters.

import type { FoundKey } from '../api-types.ts'
import { PageHeader } from '../components/page-header.tsx'
import { Badge, Loaded, Notice } from '../components/status.tsx'
import { type Column, Table } from '../components/table.tsx'
import { count, dateTime, roundDuration } from '../format.ts'
import { useLive } from '../live.tsx'
import { decodeParameter, keyHref } from '../routes.ts'
import { useQuery } from '../use-query.ts'

interface Found {
  readonly found: readonly FoundKey[]
  readonly checked: number
  readonly isComplete: boolean
}

export function FindPage({ params }: { readonly params: { readonly key: string } }) {
  const key = decodeParameter(params.key)
  const query = useQuery<Found>(`/v1/admin/keys?key=${encodeURIComponent(key)}`)
  return (
    <>
      <PageHeader title={`Find ${key}`} crumbs={[{ label: 'Overview', href: '#/' }]} />
      <section class="panel" aria-labelledby="found">
        <div class="panel-head">
          <h2 id="found">Limiters that know this key</h2>
          <button type="button" class="small" onClick={query.reload}>
            Search again
          </button>
        </div>
        <Loaded query={query}>
          {({ found, checked, isComplete }) => (
            <>
              <Table
                label="Limiters that know this key"
                columns={columnsFor(key)}
                rows={found}
                keyOf={({ limiter, dimension }) => `${limiter}/${dimension ?? ''}`}
                empty="No limiter knows this key: it has no usage, bans, blocks or overrides."
              />
              <p class="muted">
                Checked {count(checked)} {checked === 1 ? 'limiter' : 'limiters, counting each dimension'}.
              </p>
              {!isComplete && (
                <Notice tone="warn">
                  <p>Not all limiters were checked, because the configuration has too many.</p>
                </Notice>
              )}
            </>
          )}
        </Loaded>
      </section>
    </>
  )
}

function columnsFor(key: string): readonly Column<FoundKey>[] {
  return [
    {
      id: 'limiter',
      label: 'Limiter',
      cell: ({ limiter, dimension }) => (
        <a href={keyHref(limiter, key, dimension)}>
          {limiter}
          {dimension !== undefined && ` ${dimension}`}
        </a>
      ),
    },
    { id: 'state', label: 'State', cell: (found) => <State of={found} /> },
    {
      id: 'fullest',
      label: 'Fullest limit',
      cell: ({ fullest }) =>
        fullest && (
          <span class="use">
            {fullest.name}: {count(fullest.used)} of {count(fullest.limit)}
          </span>
        ),
    },
    {
      id: 'denied',
      label: 'Last denied',
      cell: ({ lastDeniedAtMs }) =>
        lastDeniedAtMs !== undefined && (
          <time dateTime={new Date(lastDeniedAtMs).toISOString()}>{dateTime(lastDeniedAtMs)}</time>
        ),
    },
  ]
}

const OVERRIDES = { limits: 'override', exempt: 'exempt', configured: 'configured override' } as const

const PROBLEMS: Readonly<Record<string, string>> = { store_invalid_state: 'its stored state is damaged' }

function State({ of }: { readonly of: FoundKey }) {
  const { allowed, denials = 0, bannedUntilMs, blockedUntilMs, override, problem } = of
  const { overview } = useLive()
  const nowMs = overview?.atMs ?? Date.now()
  const timeLeft = (untilMs: number | null) =>
    untilMs === null ? 'until unblocked' : `for ${roundDuration(Math.max(0, untilMs - nowMs))}`
  return (
    <span class="actions">
      {problem !== undefined && (
        <Badge tone="warn">unknown: {PROBLEMS[problem] ?? 'the store didn’t answer'}</Badge>
      )}
      {bannedUntilMs !== undefined && <Badge tone="bad">banned {timeLeft(bannedUntilMs)}</Badge>}
      {blockedUntilMs !== undefined && <Badge tone="bad">blocked {timeLeft(blockedUntilMs)}</Badge>}
      {bannedUntilMs === undefined && blockedUntilMs === undefined && allowed !== undefined && (
        <Badge tone={allowed ? 'good' : 'bad'}>{allowed ? 'admitted' : 'denied'}</Badge>
      )}
      {denials > 0 && <Badge tone="warn">denials toward a ban: {count(denials)}</Badge>}
      {override !== undefined && <Badge>{OVERRIDES[override]}</Badge>}
    </span>
  )
}
