import { useRef } from 'preact/hooks'
import '../components/key/key.css'
import { Actions } from '../components/key/actions.tsx'
import { AskedCost } from '../components/key/asked-cost.tsx'
import { Changes } from '../components/key/changes.tsx'
import { type Explained, keyOf, type OneKey } from '../components/key/explained.ts'
import { LimitPanel } from '../components/key/limit-panel.tsx'
import { LookUp } from '../components/key/look-up.tsx'
import type { Level } from '../components/key/picture.ts'
import { useServiceClock } from '../components/key/service-clock.ts'
import { Tail } from '../components/limiter/tail.tsx'
import { PageHeader } from '../components/page-header.tsx'
import { Answered, Badge, Notice } from '../components/status.tsx'
import { count, duration } from '../format.ts'
import { limiterHref, nameIn } from '../place.ts'
import { type AuditTold, type LimiterTold, limitInWords } from '../told.ts'
import { useAsk } from '../use-ask.ts'

const EVERY_MS = 1000
const AUDIT_EVERY_MS = 10_000
const AUDITED = 1000

/** Samples of what was used that are kept for the picture. */
const LEVELS = 600

/** One key: its windows as they move, what is decided of it, and what can be done. */
export function KeyPage({
  params,
}: {
  readonly params: { readonly name: string; readonly key: string; readonly dimension?: string }
}) {
  const { name, key, dimension } = params
  const of = {
    limiter: nameIn(name),
    key: nameIn(key),
    dimension: dimension === undefined ? undefined : nameIn(dimension),
  }
  // Another key is another page, not this one with other numbers for a moment.
  return <Key key={JSON.stringify(of)} of={of} />
}

function Key({ of }: { readonly of: OneKey }) {
  const { limiter, key, dimension } = of
  const body = { limiter, key: keyOf(of), charges: true }
  const asked = useAsk<Explained>('/v1/explain', { body, everyMs: EVERY_MS })
  const audit = useAsk<{ entries: AuditTold[] }>(`/v1/admin/audit?count=${AUDITED}`, {
    everyMs: AUDIT_EVERY_MS,
  })
  const limiters = useAsk<{ limiters: LimiterTold[] }>('/v1/admin/limiters')
  const told = limiters.data?.limiters.find(({ name }) => name === limiter)
  const clock = useServiceClock(asked.data?.atMs)
  const levels = useLevels(asked.data)
  const again = (): void => {
    asked.again()
    audit.again()
  }
  const crumbs = [
    { label: 'Overview', href: '#/' },
    { label: limiter, href: limiterHref(limiter) },
  ]
  return (
    <>
      <LookUp limiters={limiters.data?.limiters ?? []} of={of} />
      <PageHeader title={key} crumbs={crumbs}>
        {dimension !== undefined && <Badge>{dimension}</Badge>}
        {asked.data !== undefined && <Actions of={of} explained={asked.data} onDone={again} />}
      </PageHeader>
      {told?.hashesKeys === true && /^~[\w-]{22}$/.test(key) && (
        <Notice tone="warn">
          <p>This limiter keeps its keys as hashes, and this looks like one. Look up the key itself.</p>
        </Notice>
      )}
      <Answered asked={asked}>
        {(explained) => (
          <>
            <Verdict of={of} explained={explained} />
            {explained.limits.map((limit) => (
              <LimitPanel
                key={limit.name}
                limit={limit}
                atMs={explained.atMs}
                levels={levels.get(limit.name) ?? []}
                clock={clock}
                isOverride={explained.overrides.length > 0}
              />
            ))}
          </>
        )}
      </Answered>
      <Tail limiter={limiter} of={of} />
      <Changes asked={audit} of={of} hashesKeys={told?.hashesKeys === true} />
    </>
  )
}

/** How it stands with the key as a whole. */
function Verdict({ of, explained }: { readonly of: OneKey; readonly explained: Explained }) {
  const { allowed, blockedMs, bans, overrides } = explained
  return (
    <section class="panel verdict-panel" aria-labelledby="verdict">
      <div class="panel-head">
        <h2 id="verdict">Now</h2>
        {blockedMs > 0 ? (
          <Badge tone="bad">blocked for {duration(Math.ceil(blockedMs / 1000) * 1000)}</Badge>
        ) : allowed ? (
          <Badge tone="good">admitted</Badge>
        ) : (
          <Badge tone="bad">denied</Badge>
        )}
      </div>
      <AskedCost of={of} usual={explained} />
      <dl class="facts">
        <dt>Bans</dt>
        <dd>{bansInWords(explained)}</dd>
        {bans.some(({ level, denials }) => level > 0 || denials > 0) && (
          <>
            <dt>Towards the next</dt>
            <dd>
              {bans
                .map(({ denials, level }) => `${count(denials)} denials, ${count(level)} bans in a row`)
                .join(', ')}
            </dd>
          </>
        )}
        <dt>Overrides</dt>
        <dd>
          {overrides.length === 0
            ? 'none: the usual limits'
            : overrides.map(({ limits, expiresInMs }) => (
                <span key={expiresInMs}>
                  {limits.map(limitInWords).join(', ')}
                  <span class="muted">
                    {expiresInMs === 0
                      ? ', until it is deleted'
                      : `, for ${duration(Math.ceil(expiresInMs / 1000) * 1000)} more`}
                  </span>
                </span>
              ))}
        </dd>
      </dl>
    </section>
  )
}

function bansInWords({ bans, blockedMs }: Explained): string {
  if (bans.length === 0) return 'this limiter has none: its configuration says no ban'
  return blockedMs > 0 ? 'blocked: everything is denied' : 'not blocked'
}

/** What was used of each limit, by the answers so far. */
function useLevels(explained: Explained | undefined): ReadonlyMap<string, readonly Level[]> {
  const levels = useRef<ReadonlyMap<string, readonly Level[]>>(new Map())
  const heard = useRef<Explained>()
  if (explained !== undefined && explained !== heard.current) {
    const { atMs, limits } = explained
    // A clock that was set back tells a new story.
    const isLater = atMs >= (heard.current?.atMs ?? 0)
    const before = isLater ? levels.current : new Map<string, readonly Level[]>()
    levels.current = new Map(
      limits.map(({ name, used }) => [name, [...(before.get(name) ?? []), { atMs, used }].slice(-LEVELS)]),
    )
    heard.current = explained
  }
  return levels.current
}
