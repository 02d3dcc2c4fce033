import { useState } from 'preact/hooks'
import { ask } from '../../api.ts'
import { count, duration } from '../../format.ts'
import { useSession } from '../../session.tsx'
import type { LimitTold } from '../../told.ts'
import { Confirm } from '../dialog.tsx'
import { type Explained, keyOf, type OneKey } from './explained.ts'
import { OverrideForm } from './override-form.tsx'
import { isSpan } from './span-text.ts'

type Action = 'reset' | 'ban' | 'unban' | 'override' | 'delete'

/** What an operator can do to a key: each is confirmed, and stands in the audit. */
export function Actions({
  of,
  explained,
  onDone,
}: {
  readonly of: OneKey
  readonly explained: Explained
  /** Something was changed, or may have been. */
  readonly onDone: () => void
}) {
  const { may } = useSession()
  const [action, setAction] = useState<Action>()
  if (!may('admin')) return null
  const { bans, overrides, blockedMs } = explained
  const canBan = bans.length > 0
  const isRemembered = bans.some(({ level, denials }) => level > 0 || denials > 0)
  return (
    <>
      <div class="actions">
        <button type="button" onClick={() => setAction('override')}>
          {overrides.length > 0 ? 'Change the override…' : 'Override…'}
        </button>
        {overrides.length > 0 && (
          <button type="button" onClick={() => setAction('delete')}>
            Delete the override…
          </button>
        )}
        <button type="button" onClick={() => setAction('reset')}>
          Reset…
        </button>
        {canBan && (blockedMs > 0 || isRemembered) && (
          <button type="button" onClick={() => setAction('unban')}>
            Unban…
          </button>
        )}
        {canBan && (
          <button type="button" class="dangerous" onClick={() => setAction('ban')}>
            Ban…
          </button>
        )}
      </div>
      {action !== undefined && (
        <Ask
          action={action}
          of={of}
          explained={explained}
          onDone={onDone}
          onClose={() => setAction(undefined)}
        />
      )}
    </>
  )
}

function Ask({
  action,
  of,
  explained,
  onDone,
  onClose,
}: {
  readonly action: Action
  readonly of: OneKey
  readonly explained: Explained
  readonly onDone: () => void
  readonly onClose: () => void
}) {
  const [span, setSpan] = useState('10m')
  const { limiter } = of
  const body = { limiter, key: keyOf(of) }
  // What has failed is in the audit, too.
  const done = (asked: Promise<unknown>): Promise<unknown> => asked.finally(onDone)
  const whom = <Whom of={of} />
  switch (action) {
    case 'reset':
      return (
        <Confirm
          title="Reset this key?"
          action="Reset"
          isDangerous
          onConfirm={() => done(ask('POST', '/v1/admin/reset', body))}
          onClose={onClose}
        >
          <p>
            All that <b>{limiter}</b> has counted for {whom} is forgotten{usedInWords(explained)}, with its
            bans and reservations. It begins anew at once. Its overrides stay.
          </p>
        </Confirm>
      )
    case 'ban':
      return (
        <Confirm
          title="Ban this key?"
          action="Ban"
          isDangerous
          isReady={isSpan(span)}
          onConfirm={() => done(ask('POST', '/v1/admin/ban', { ...body, duration: span.trim() }))}
          onClose={onClose}
        >
          <p>
            <b>{limiter}</b> denies every request of {whom} from now on, on all instances, whatever its limits
            say
            {explained.blockedMs > 0 &&
              `; it is blocked for ${duration(explained.blockedMs)} already, which this replaces`}
            .
          </p>
          <label>
            For
            <input
              type="text"
              value={span}
              onInput={(event) => setSpan(event.currentTarget.value)}
              aria-describedby="ban-hint"
            />
            <span class="field-hint" id="ban-hint">
              Such as 30s, 10m, 12h or 7d.
            </span>
          </label>
        </Confirm>
      )
    case 'unban':
      return (
        <Confirm
          title="Unban this key?"
          action="Unban"
          onConfirm={() => done(ask('POST', '/v1/admin/unban', body))}
          onClose={onClose}
        >
          <p>
            <b>{limiter}</b> lets {whom} go, and forgets its denials and earlier bans: the next ban is a first
            one. Its limits count on.
          </p>
        </Confirm>
      )
    case 'delete':
      return (
        <Confirm
          title="Delete the override?"
          action="Delete"
          isDangerous
          onConfirm={() => done(ask('DELETE', '/v1/admin/overrides', body))}
          onClose={onClose}
        >
          <p>
            <b>{limiter}</b> holds {whom} to its usual limits again, on all instances. What it has used counts
            on.
          </p>
        </Confirm>
      )
    case 'override':
      return (
        <OverrideForm
          who={whom}
          limits={explained.limits.flatMap(({ declared }) => declared ?? [])}
          onSet={(limits: readonly LimitTold[], ttl) =>
            done(ask('PUT', '/v1/admin/overrides', { ...body, limits, ...(ttl !== undefined && { ttl }) }))
          }
          onClose={onClose}
        />
      )
  }
}

/** A key is whatever callers say: it stands out, and ends where it ends. */
function Whom({ of: { key, dimension } }: { readonly of: OneKey }) {
  return (
    <>
      {dimension !== undefined && <span class="muted">{dimension} </span>}
      <code class="whom">{key}</code>
    </>
  )
}

function usedInWords({ limits }: Explained): string {
  const used = limits.filter((limit) => limit.used > 0)
  if (used.length === 0) return ''
  return `: ${used.map((limit) => `${count(limit.used)} of ${limit.name}`).join(', ')}`
}
