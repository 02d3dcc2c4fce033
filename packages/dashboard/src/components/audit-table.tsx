// The table of operators' changes, each with an undo button.

import { useState } from 'preact/hooks'
import { request } from '../api.ts'
import type { AuditEntry } from '../api-types.ts'
import { dateTime } from '../format.ts'
import { limiterHref } from '../routes.ts'
import { useSession } from '../session.tsx'
import { Confirm } from './dialog.tsx'
import { KeyLink } from './key-link.tsx'
import { AuditResult, Badge } from './status.tsx'
import { type Column, Table } from './table.tsx'

export function AuditTable({
  label,
  entries,
  onDone,
  empty,
  pageSize = 25,
  isOneKey = false,
}: {
  readonly label: string
  readonly entries: readonly AuditEntry[]
  /** Called after an attempt to undo a change. */
  readonly onDone: () => void
  readonly empty: string
  readonly pageSize?: number
  /** Omits the column with the limiter and the key. */
  readonly isOneKey?: boolean
}) {
  const { may } = useSession()
  const [undone, setUndone] = useState<AuditEntry>()
  const columns = columnsFor(may('admin') ? setUndone : undefined).filter(
    ({ id }) => !isOneKey || id !== 'of',
  )
  return (
    <>
      <Table
        label={label}
        columns={columns}
        rows={entries}
        keyOf={({ id }) => id}
        {...(!isOneKey && { filterBy: wordsOf, filterLabel: 'Filter by user, change, limiter or key' })}
        pageSize={pageSize}
        empty={empty}
      />
      {undone !== undefined && (
        <Confirm
          title="Undo this change?"
          action="Undo"
          onConfirm={(reason) =>
            request('POST', '/v1/admin/undo', { id: undone.id, ...reason }).finally(onDone)
          }
          onClose={() => setUndone(undefined)}
        >
          <p>
            {undone.who} changed <b>{undone.limiter}</b>
            {undone.key !== undefined && (
              <>
                {' '}
                for <code class="whom">{keyText(undone.key)}</code>
              </>
            )}
            : {undone.summary}. Undoing this restores the previous state, with its original expiry. It fails
            if something has changed since.
          </p>
        </Confirm>
      )}
    </>
  )
}

function columnsFor(undo: ((entry: AuditEntry) => void) | undefined): readonly Column<AuditEntry>[] {
  return [
    {
      id: 'at',
      label: 'Time, user',
      cell: ({ atMs, who }) => (
        <>
          <time dateTime={new Date(atMs).toISOString()}>{dateTime(atMs)}</time>
          <div class="muted">{who}</div>
        </>
      ),
    },
    { id: 'what', label: 'Change', cell: (entry) => <What entry={entry} /> },
    { id: 'of', label: 'Limiter, key', cell: (entry) => <Of entry={entry} /> },
    {
      id: 'result',
      label: 'Result',
      cell: (entry) => (
        <div class="actions">
          {entry.isUndone ? <Badge>undone</Badge> : <AuditResult {...entry} />}
          {undo !== undefined && entry.canUndo && (
            <button
              type="button"
              class="small"
              aria-label={`Undo ${entry.what} from ${dateTime(entry.atMs)}`}
              onClick={() => undo(entry)}
            >
              Undo
            </button>
          )}
        </div>
      ),
    },
    { id: 'instance', label: 'Instance', cell: ({ instance }) => instance, isMinor: true },
  ]
}

function What({ entry: { what, summary, detail, reason } }: { readonly entry: AuditEntry }) {
  return (
    <>
      {what}
      {summary !== undefined
        ? `: ${summary}`
        : detail !== undefined && <code> {JSON.stringify(detail)}</code>}
      {reason !== undefined && <div class="muted">“{reason}”</div>}
    </>
  )
}

/** Links an entry's limiter and keys. Hashed and shortened keys aren't linked, because they have no page. */
function Of({ entry: { limiter, key = {} } }: { readonly entry: AuditEntry }) {
  if (limiter === undefined) return null
  const keys = typeof key === 'string' ? [[undefined, key] as const] : Object.entries(key)
  return (
    <>
      <a href={limiterHref(limiter)}>{limiter}</a>
      {keys.map(([dimension, each]) => (
        <div key={dimension ?? ''}>
          <KeyLink
            limiter={limiter}
            of={{ key: each, ...(dimension !== undefined && { dimension }) }}
            hasPage={!/^~[\w-]{22}$/.test(each)}
          />
        </div>
      ))}
    </>
  )
}

function keyText(key: AuditEntry['key']): string {
  if (key === undefined) return ''
  if (typeof key === 'string') return key
  return Object.entries(key)
    .map(([dimension, each]) => `${dimension}=${each}`)
    .join(' ')
}

function wordsOf({ who, what, limiter, key, summary, reason }: AuditEntry): string {
  return [who, what, limiter, keyText(key), summary, reason].join(' ')
}
