import { useRef } from 'preact/hooks'
import '../components/key/key.css'
import { Actions } from '../components/key/actions.tsx'
import { AskedCost } from '../components/key/asked-cost.tsx'
import { Changes } from '../components/key/changes.tsx'
import {
  declaredName,
  type Explained,
  keyOf,
  type LimitExplained,
  type OneKey,
} from '../components/key/explained.ts'
import { LimitPanel } from '../components/key/limit-panel.tsx'
import { LookUp } from '../components/key/look-up.tsx'
import type { Level } from '../components/key/picture.ts'
import { useServiceClock } from '../components/key/service-clock.ts'
import { Tail } from '../components/limiter/tail.tsx'
import { PageHeader } from '../components/page-header.tsx'
import { Answered, Badge, Notice } from '../components/status.tsx'
import { count, roundDuration } from '../format.ts'
import { limiterHref, nameIn } from '../place.ts'
import { type AuditTold, blockInWords, hasRule, type LimiterTold, ruleInWords } from '../told.ts'
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
        {asked.data !== undefined && told !== undefined && (
          <Actions of={of} config={told.config} explained={asked.data} onDone={again} />
        )}
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
                isOverride={isOverridden(of, limit, explained)}
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
  const { allowed, blockedMs, bans } = explained
  const rules = explained.overrides.filter(hasRule)
  return (
    <section class="panel verdict-panel" aria-labelledby="verdict">
      <div class="panel-head">
        <h2 id="verdict">Now</h2>
        {blockedMs !== 0 ? (
          <Badge tone="bad">{blockInWords(blockedMs)}</Badge>
        ) : allowed ? (
          <Badge tone="good">admitted</Badge>
        ) : (
          <Badge tone="bad">denied</Badge>
        )}
      </div>
      <AskedCost of={of} usual={explained} />
      <dl class="facts">
        {bans.some(({ level, denials }) => level > 0 || denials > 0) && (
          <>
            <dt>Towards the next ban</dt>
            <dd>
              {bans
                .map(({ denials, level }) => `${count(denials)} denials, ${count(level)} bans in a row`)
                .join(', ')}
            </dd>
          </>
        )}
        <dt>Override</dt>
        <dd>
          {rules.length === 0
            ? 'none'
            : rules.map((override) => (
                <span key={override.dimension}>
                  {ruleInWords(override)}
                  <span class="muted">
                    {override.expiresInMs === undefined
                      ? ', until it is deleted'
                      : `, for ${roundDuration(override.expiresInMs)} more`}
                  </span>
                </span>
              ))}
        </dd>
      </dl>
    </section>
  )
}

/** Whether a limit has numbers of an override, or only counts by it. */
function isOverridden(of: OneKey, limit: LimitExplained, { limits: all, overrides }: Explained): boolean {
  const name = declaredName(of, limit)
  return overrides.some(({ limits = {}, exempt, unused = [] }) => {
    if (exempt) return true
    const used = Object.keys(limits).filter((each) => !unused.includes(each))
    return used.includes(name) || (all.length === 1 && used.length > 0)
  })
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
