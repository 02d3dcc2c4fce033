// Actions on a key: reset, block, unblock, override. Each needs a confirmation, and is in the audit.

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
  /** Called when something has changed, or may have. */
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
  const [span, setSpan] = useState('10m')
  const { limiter } = of
  const body = { limiter, key: keyOf(of) }
  // The audit has failed actions, too.
  const done = (answer: Promise<unknown>): Promise<unknown> => answer.finally(onDone)
  const whom = <Whom of={of} />
  switch (action) {
    case 'reset':
      return (
        <Confirm
          title="Reset this key?"
          action="Reset"
          isDangerous
          onConfirm={() => done(request('POST', '/v1/admin/reset', body))}
          onClose={onClose}
        >
          <p>
            <b>{limiter}</b> forgets what {whom} has used{usedInWords(explained)}, its bans and its
            reservations. All its limits are free at once. Its override stays.
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
          onConfirm={() =>
            done(
              request('POST', '/v1/admin/block', {
                ...body,
                ...(span.trim() !== '' && { ttl: span.trim() }),
              }),
            )
          }
          onClose={onClose}
        >
          <p>
            <b>{limiter}</b> denies all requests of {whom}, on all instances, from now on
            {explained.blockedMs !== 0 && `. It is already ${blockInWords(explained.blockedMs)}`}.
          </p>
          <Field
            label="Duration"
            value={span}
            onInput={setSpan}
            problem={durationProblem(span)}
            hint="Such as 30s, 10m, 12h or 7d. Leave it empty to block until you unblock it."
          />
        </Confirm>
      )
    case 'unblock':
      return (
        <Confirm
          title="Unblock this key?"
          action="Unblock"
          onConfirm={() => done(request('POST', '/v1/admin/unblock', body))}
          onClose={onClose}
        >
          <p>
            <b>{limiter}</b> no longer blocks {whom}, and forgets its denials and earlier bans. Its limits and
            its override stay.
          </p>
        </Confirm>
      )
    case 'delete':
      return (
        <Confirm
          title="Delete the override?"
          action="Delete"
          isDangerous
          onConfirm={() => done(request('DELETE', '/v1/admin/overrides', body))}
          onClose={onClose}
        >
          <p>
            {whom} gets the declared limits of <b>{limiter}</b> again, on all instances. A block ends, too.
            Its usage still counts.
          </p>
        </Confirm>
      )
    case 'override':
      return (
        <OverrideForm
          whom={whom}
          limits={draftsOf(of, explained, namesIn(config))}
          isExempt={explained.overrides.some(({ exempt }) => exempt === true)}
          onSet={(change) => done(request('PUT', '/v1/admin/overrides', { ...body, ...change }))}
          onClose={onClose}
        />
      )
  }
}

/** All names that a configuration gives to limits. */
function namesIn(config: DeclaredLimiter['config']): ReadonlySet<string> {
  const names = new Set<string>()
  JSON.stringify(config, (_, value) => {
    if (typeof value?.kind === 'string' && typeof value.name === 'string') names.add(value.name)
    return value
  })
  return names
}

/** Callers choose keys, so a key is set apart from the text around it. */
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
  return `: ${used.map((limit) => `${count(limit.used)} of ${limit.name}`).join(', ')}`
}
