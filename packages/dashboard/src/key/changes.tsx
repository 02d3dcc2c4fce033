// Changes that operators made to a key, from the audit.

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
  /** Whether the audit has the keys of this limiter as hashes. */
  readonly hashesKeys: boolean
}) {
  return (
    <section class="panel" aria-labelledby="changes">
      <h2 id="changes">What was done to this key</h2>
      <Loaded query={query}>
        {({ entries }) => (
          <Table
            label="Changes of this key, the newest first"
            columns={COLUMNS}
            rows={entries.filter((entry) => isOf(entry, of))}
            keyOf={({ id }) => id}
            pageSize={10}
            empty={
              hashesKeys
                ? 'Not known by the key: the audit has the keys of this limiter as hashes.'
                : 'Nothing, as far as the audit reaches back.'
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
