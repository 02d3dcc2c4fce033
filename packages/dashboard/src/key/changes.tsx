// The changes that operators have made to a key, from the audit log.

import type { AuditEntry, OneKey } from '../api-types.ts'
import { AuditTable } from '../components/audit-table.tsx'
import { Loaded } from '../components/status.tsx'
import type { Query } from '../use-query.ts'

export function Changes({
  query,
  of,
  hashesKeys,
  onDone,
}: {
  readonly query: Query<{ entries: AuditEntry[] }>
  readonly of: OneKey
  /** Whether the audit log stores this limiter's keys as hashes. */
  readonly hashesKeys: boolean
  /** Called after an attempt to undo a change. */
  readonly onDone: () => void
}) {
  return (
    <section class="panel" aria-labelledby="changes">
      <h2 id="changes">Changes</h2>
      <Loaded query={query}>
        {({ entries }) => (
          <AuditTable
            label="Changes to this key, newest first"
            entries={entries.filter((entry) => isOf(entry, of))}
            onDone={onDone}
            isOneKey
            pageSize={10}
            empty={
              hashesKeys
                ? 'Unknown: the audit log stores this limiter’s keys as hashes.'
                : 'No changes in the audit log.'
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
