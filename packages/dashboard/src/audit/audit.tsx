// The audit page: all changes, newest first.

import type { AuditEntry } from '../api-types.ts'
import { PageHeader } from '../components/page-header.tsx'
import { AuditResult, Loaded } from '../components/status.tsx'
import { type Column, Table } from '../components/table.tsx'
import { dateTime } from '../format.ts'
import { limiterHref } from '../routes.ts'
import { useQuery } from '../use-query.ts'

const SHOWN = 500
const EVERY_MS = 5000

export function AuditPage() {
  const query = useQuery<{ entries: AuditEntry[] }>(`/v1/admin/audit?count=${SHOWN}`, { everyMs: EVERY_MS })
  return (
    <>
      <PageHeader title="Audit" />
      <div class="panel">
        <p class="muted">The latest {SHOWN} changes made through the service, newest first.</p>
        <Loaded query={query}>
          {({ entries }) => (
            <Table
              label="Changes"
              columns={COLUMNS}
              rows={entries}
              keyOf={({ id }) => id}
              filterBy={wordsOf}
              filterLabel="Filter by user, change, limiter or key"
              empty="No changes yet."
            />
          )}
        </Loaded>
      </div>
    </>
  )
}

const COLUMNS: readonly Column<AuditEntry>[] = [
  {
    id: 'at',
    label: 'When',
    cell: ({ atMs }) => <time dateTime={new Date(atMs).toISOString()}>{dateTime(atMs)}</time>,
  },
  { id: 'who', label: 'Who', cell: ({ who }) => who },
  { id: 'what', label: 'What', cell: ({ what }) => what },
  {
    id: 'limiter',
    label: 'Limiter',
    cell: ({ limiter }) => limiter !== undefined && <a href={limiterHref(limiter)}>{limiter}</a>,
  },
  { id: 'key', label: 'Key', cell: ({ key }) => <span class="mono">{keyText(key)}</span> },
  { id: 'detail', label: 'Detail', cell: ({ detail }) => detail && <code>{JSON.stringify(detail)}</code> },
  { id: 'result', label: 'Result', cell: (entry) => <AuditResult {...entry} /> },
  { id: 'instance', label: 'Instance', cell: ({ instance }) => instance, isMinor: true },
]

function keyText(key: AuditEntry['key']): string {
  if (key === undefined) return ''
  if (typeof key === 'string') return key
  return Object.entries(key)
    .map(([dimension, each]) => `${dimension}=${each}`)
    .join(' ')
}

function wordsOf({ who, what, limiter, key, detail }: AuditEntry): string {
  return [who, what, limiter, keyText(key), detail && JSON.stringify(detail)].join(' ')
}
