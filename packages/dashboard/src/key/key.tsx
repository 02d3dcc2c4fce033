// A key's page: its moving windows, its decisions, and actions on it.

import { useRef } from 'preact/hooks'
import {
  type AuditEntry,
  type DeclaredLimiter,
  declaredName,
  type ExplainedLimit,
  type Explanation,
  hasRule,
  keyOf,
  type OneKey,
} from '../api-types.ts'
import { PageHeader } from '../components/page-header.tsx'
import { Badge, Loaded, Notice } from '../components/status.tsx'
import { Tail } from '../components/tail.tsx'
import { blockInWords, count, dateTime, roundDuration, ruleInWords } from '../format.ts'
import { decodeParameter, limiterHref } from '../routes.ts'
import { useQuery } from '../use-query.ts'
import { Actions } from './actions.tsx'
import { Changes } from './changes.tsx'
import { CostCheck } from './cost-check.tsx'
import { KeyHistory } from './key-history.tsx'
import { LimitPanel } from './limit-panel.tsx'
import { LookUp } from './look-up.tsx'
import { useServiceClock } from './motion.ts'
import type { Level } from './window-geometry.ts'
import './key.css'

const EVERY_MS = 1000
const AUDIT_EVERY_MS = 10_000
const AUDITED = 1000

/** Maximum number of usage samples to keep for the picture. */
const LEVELS = 600

export function KeyPage({
  params,
}: {
  readonly params: { readonly name: string; readonly key: string; readonly dimension?: string }
}) {
  const { name, key, dimension } = params
  const of = {
    limiter: decodeParameter(name),
    key: decodeParameter(key),
    dimension: dimension === undefined ? undefined : decodeParameter(dimension),
  }
  // A new component for each key, so that the previous key's numbers aren't shown.
  return <Key key={JSON.stringify(of)} of={of} />
}

function Key({ of }: { readonly of: OneKey }) {
  const { limiter, key, dimension } = of
  const body = { limiter, key: keyOf(of), charges: true }
  const query = useQuery<Explanation>('/v1/explain', { body, everyMs: EVERY_MS })
  const audit = useQuery<{ entries: AuditEntry[] }>(`/v1/admin/audit?count=${AUDITED}`, {
    everyMs: AUDIT_EVERY_MS,
  })
  const limiters = useQuery<{ limiters: DeclaredLimiter[] }>('/v1/admin/limiters')
  const declared = limiters.data?.limiters.find(({ name }) => name === limiter)
  const clock = useServiceClock(query.data?.atMs)
  const levels = useLevels(query.data)
  const reload = (): void => {
    query.reload()
    audit.reload()
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
        {query.data !== undefined && declared !== undefined && (
          <Actions of={of} config={declared.config} explained={query.data} onDone={reload} />
        )}
      </PageHeader>
      {declared?.hashesKeys === true && /^~[\w-]{22}$/.test(key) && (
        <Notice tone="warn">
          <p>This looks like the hash of a key. Look up the key itself.</p>
        </Notice>
      )}
      <Loaded query={query}>
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
      </Loaded>
      <KeyHistory of={of} limits={query.data?.limits ?? []} />
      <Tail limiter={limiter} of={of} />
      <Changes query={audit} of={of} hashesKeys={declared?.hashesKeys === true} onDone={reload} />
    </>
  )
}

/** Shows whether the key is admitted, its bans, and its override. */
function Verdict({ of, explained }: { readonly of: OneKey; readonly explained: Explanation }) {
  const { allowed, blockedMs, bans } = explained
  const rules = explained.overrides.filter(hasRule)
  // A block by an operator takes precedence over a ban.
  const isBlocked = explained.overrides.some((override) => override.blockedMs !== undefined)
  const banned = isBlocked ? undefined : bans.find((ban) => ban.blockedMs > 0)
  return (
    <section class="panel verdict-panel" aria-labelledby="verdict">
      <div class="panel-head">
        <h2 id="verdict">Now</h2>
        {blockedMs !== 0 ? (
          <Badge tone="bad">
            {banned === undefined ? blockInWords(blockedMs) : `banned for ${roundDuration(banned.blockedMs)}`}
          </Badge>
        ) : allowed ? (
          <Badge tone="good">admitted</Badge>
        ) : (
          <Badge tone="bad">denied</Badge>
        )}
      </div>
      <CostCheck of={of} usual={explained} />
      <dl class="facts">
        {banned?.sinceMs !== undefined && (
          <>
            <dt>Banned since</dt>
            <dd>{dateTime(banned.sinceMs)}</dd>
          </>
        )}
        {bans.some(({ level, denials }) => level > 0 || denials > 0) && (
          <>
            <dt>Next ban</dt>
            <dd>
              {bans
                .map(
                  ({ denials, level }) =>
                    `${count(denials)} denials so far, after ${count(level)} ${level === 1 ? 'ban' : 'bans'}`,
                )
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
                      ? ', never expires'
                      : `, expires in ${roundDuration(override.expiresInMs)}`}
                  </span>
                </span>
              ))}
        </dd>
      </dl>
    </section>
  )
}

/** Whether an override changes or exempts a limit. */
function isOverridden(of: OneKey, limit: ExplainedLimit, { limits: all, overrides }: Explanation): boolean {
  const name = declaredName(of, limit)
  return overrides.some(({ limits = {}, exempt, unused = [] }) => {
    if (exempt) return true
    const used = Object.keys(limits).filter((each) => !unused.includes(each))
    return used.includes(name) || (all.length === 1 && used.length > 0)
  })
}

/** Collects the usage of each limit from the responses so far. */
function useLevels(explained: Explanation | undefined): ReadonlyMap<string, readonly Level[]> {
  const levels = useRef<ReadonlyMap<string, readonly Level[]>>(new Map())
  const heard = useRef<Explanation>()
  if (explained !== undefined && explained !== heard.current) {
    const { atMs, limits } = explained
    // If the clock was set back, the history starts over.
    const isLater = atMs >= (heard.current?.atMs ?? 0)
    const before = isLater ? levels.current : new Map<string, readonly Level[]>()
    levels.current = new Map(
      limits.map(({ name, used }) => [name, [...(before.get(name) ?? []), { atMs, used }].slice(-LEVELS)]),
    )
    heard.current = explained
  }
  return levels.current
}
