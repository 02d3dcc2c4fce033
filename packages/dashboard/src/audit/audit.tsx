// The audit page: all changes, newest first.

import type { AuditEntry } from '../api-types.ts'
import { AuditTable } from '../components/audit-table.tsx'
import { PageHeader } from '../components/page-header.tsx'
import { Loaded } from '../components/status.tsx'
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
            <AuditTable label="Changes" entries={entries} onDone={query.reload} empty="No changes yet." />
          )}
        </Loaded>
      </div>
    </>
  )
}
