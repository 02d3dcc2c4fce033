// Actions on a key: reset, block, unblock, override. Each action must be confirmed, and is recorded in the audit log.

import { useState } from 'preact/hooks'
import { request } from '../api.ts'
import { type DeclaredLimiter, type Explanation, hasRule, keyOf, type OneKey } from '../api-types.ts'
import { Confirm } from '../components/dialog.tsx'
import { durationProblem, Field } from '../components/field.tsx'
import { blockInWords, count } from '../format.ts'
import { useSession } from '../session.tsx'
import { draftsOf, OverrideForm } from './override-form.tsx'

type Action = 'reset' | 'block' | 'unblock' | 'override' | 'delete'

export function Actions({
  of,
  config,
  explained,
  onDone,
}: {
  readonly of: OneKey
  /** The limiter's configuration. */
  readonly config: DeclaredLimiter['config']
  readonly explained: Explanation
  /** Called after each action, even if it failed. */
  readonly onDone: () => void
}) {
  const { may } = useSession()
  const [action, setAction] = useState<Action>()
  if (!may('admin')) return null
  const { bans, blockedMs } = explained
  const hasOverride = explained.overrides.some(hasRule)
  const isOn = config.overrides !== false
  const isRemembered = bans.some(({ level, denials }) => level > 0 || denials > 0)
  return (
    <>
      <div class="actions">
        {isOn && (
          <button type="button" onClick={() => setAction('override')}>
            {hasOverride ? 'Change the override…' : 'Override…'}
          </button>
        )}
        {isOn && hasOverride && (
          <button type="button" onClick={() => setAction('delete')}>
            Delete the override…
          </button>
        )}
        <button type="button" onClick={() => setAction('reset')}>
          Reset…
        </button>
        {(blockedMs !== 0 || isRemembered) && (
          <button type="button" onClick={() => setAction('unblock')}>
            Unblock…
          </button>
        )}
        {isOn && (
          <button type="button" class="dangerous" onClick={() => setAction('block')}>
            Block…
          </button>
        )}
      </div>
      {action !== undefined && (
        <ActionDialog
          action={action}
          of={of}
          config={config}
          explained={explained}
          onDone={onDone}
          onClose={() => setAction(undefined)}
        />
      )}
    </>
  )
}

function ActionDialog({
  action,
  of,
  config,
  explained,
  onDone,
  onClose,
}: {
  readonly action: Action
  readonly of: OneKey
  readonly config: DeclaredLimiter['config']
  readonly explained: Explanation
  readonly onDone: () => void
  readonly onClose: () => void
}) {
  const [span, setSpan] = useState('1h')
  const { limiter } = of
  const body = { limiter, key: keyOf(of) }
  // `onDone` is called even after a failure, because failed actions are recorded, too.
  const done = (answer: Promise<unknown>): Promise<unknown> => answer.finally(onDone)
  const whom = <Whom of={of} />
  switch (action) {
    case 'reset':
      return (
        <Confirm
          title="Reset this key?"
          action="Reset"
          isDangerous
          onConfirm={(reason) => done(request('POST', '/v1/admin/reset', { ...body, ...reason }))}
          onClose={onClose}
        >
          <p>
            Deletes the usage of {whom} in <b>{limiter}</b>
            {usedInWords(explained)}, its bans and its reservations, so that all its limits are free again.
            Its override is kept.
          </p>
        </Confirm>
      )
    case 'block':
      return (
        <Confirm
          title="Block this key?"
          action="Block"
          isDangerous
          missing={durationProblem(span) && 'Enter a valid duration.'}
          onConfirm={(reason) =>
            done(
              request('POST', '/v1/admin/block', {
                ...{ ...body, ...reason },
                ...(span.trim() !== '' && { ttl: span.trim() }),
              }),
            )
          }
          onClose={onClose}
        >
          <p>
            <b>{limiter}</b> denies all requests for {whom}, on all instances, from now on
            {explained.blockedMs !== 0 && `. The key is already ${blockInWords(explained.blockedMs)}`}.
          </p>
          <Field
            label="Duration"
            value={span}
            onInput={setSpan}
            problem={durationProblem(span)}
            hint="Such as 30s, 10m, 12h or 7d. If empty, the key is blocked until you unblock it."
          />
        </Confirm>
      )
    case 'unblock':
      return (
        <Confirm
          title="Unblock this key?"
          action="Unblock"
          onConfirm={(reason) => done(request('POST', '/v1/admin/unblock', { ...body, ...reason }))}
          onClose={onClose}
        >
          <p>
            Ends the block and the ban on {whom} in <b>{limiter}</b>, and forgets its denials and earlier
            bans. Its usage and override are kept.
          </p>
        </Confirm>
      )
    case 'delete':
      return (
        <Confirm
          title="Delete the override?"
          action="Delete"
          isDangerous
          onConfirm={(reason) => done(request('DELETE', '/v1/admin/overrides', { ...body, ...reason }))}
          onClose={onClose}
        >
          <p>
            The configured limits of <b>{limiter}</b> apply to {whom} again, on all instances. If the key is
            blocked, its block ends, too. Its usage still counts.
          </p>
        </Confirm>
      )
    case 'override':
      return (
        <OverrideForm
          whom={whom}
          limits={draftsOf(of, explained, namesIn(config))}
          blockedMs={explained.blockedMs}
          isExempt={explained.overrides.some(({ exempt }) => exempt === true)}
          onSet={(change) => done(request('PUT', '/v1/admin/overrides', { ...body, ...change }))}
          onClose={onClose}
        />
      )
  }
}

/** All limit names in a configuration. */
function namesIn(config: DeclaredLimiter['config']): ReadonlySet<string> {
  const names = new Set<string>()
  JSON.stringify(config, (_, value) => {
    if (typeof value?.kind === 'string' && typeof value.name === 'string') names.add(value.name)
    return value
  })
  return names
}

/** Callers choose keys, so a key must stand out from the text around it. */
function Whom({ of: { key, dimension } }: { readonly of: OneKey }) {
  return (
    <>
      {dimension !== undefined && <span class="muted">{dimension} </span>}
      <code class="whom">{key}</code>
    </>
  )
}

function usedInWords({ limits }: Explanation): string {
  const used = limits.filter((limit) => limit.used > 0)
  if (used.length === 0) return ''
  return ` (${used.map((limit) => `${limit.name}: ${count(limit.used)}`).join(', ')})`
}
