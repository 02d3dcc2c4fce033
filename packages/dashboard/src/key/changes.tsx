// Changes by operators to a key, from the audit.

import type { AuditEntry, OneKey } from '../api-types.ts'
import { AuditResult, Loaded } from '../components/status.tsx'
import { type Column, Table } from '../components/table.tsx'
import { dateTime } from '../format.ts'
import type { Query } from '../use-query.ts'

const COLUMNS: readonly Column<AuditEntry>[] = [
  { id: 'at', label: 'When', cell: ({ atMs }) => dateTime(atMs) },
  { id: 'who', label: 'Who', cell: ({ who }) => who },
  { id: 'what', label: 'What', cell: ({ what }) => what },
  {
    id: 'detail',
    label: 'Detail',
    cell: ({ detail }) => detail !== undefined && <code>{JSON.stringify(detail)}</code>,
    isMinor: true,
  },
  { id: 'result', label: 'Result', cell: (entry) => <AuditResult {...entry} /> },
]

export function Changes({
  query,
  of,
  hashesKeys,
}: {
  readonly query: Query<{ entries: AuditEntry[] }>
  readonly of: OneKey
  /** Whether the audit stores this limiter's keys as hashes. */
  readonly hashesKeys: boolean
}) {
  return (
    <section class="panel" aria-labelledby="changes">
      <h2 id="changes">Changes</h2>
      <Loaded query={query}>
        {({ entries }) => (
          <Table
            label="Changes to this key, newest first"
            columns={COLUMNS}
            rows={entries.filter((entry) => isOf(entry, of))}
            keyOf={({ id }) => id}
            pageSize={10}
            empty={
              hashesKeys
                ? 'Unknown: the audit stores the keys of this limiter as hashes.'
                : 'No changes in the audit.'
            }
          />
        )}
      </Loaded>
    </section>
  )
}

function isOf(entry: AuditEntry, { limiter, key, dimension }: OneKey): boolean {
  if (entry.limiter !== limiter || entry.key === undefined) return false
  return typeof entry.key === 'string' ? entry.key === key : entry.key[dimension ?? ''] === key
}
