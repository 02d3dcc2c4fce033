import { dateTime } from '../../format.ts'
import type { AuditTold } from '../../told.ts'
import type { Asked } from '../../use-ask.ts'
import { AuditResult } from '../audit-result.tsx'
import { Answered } from '../status.tsx'
import { type Column, Table } from '../table.tsx'
import type { OneKey } from './explained.ts'

const COLUMNS: readonly Column<AuditTold>[] = [
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

/** What operators have done to this key, by the audit. */
export function Changes({
  asked,
  of,
  hashesKeys,
}: {
  readonly asked: Asked<{ entries: AuditTold[] }>
  readonly of: OneKey
  /** Whether the audit has the keys of this limiter as hashes. */
  readonly hashesKeys: boolean
}) {
  return (
    <section class="panel" aria-labelledby="changes">
      <h2 id="changes">What was done to this key</h2>
      <Answered asked={asked}>
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
      </Answered>
    </section>
  )
}

function isOf(entry: AuditTold, { limiter, key, dimension }: OneKey): boolean {
  if (entry.limiter !== limiter || entry.key === undefined) return false
  return typeof entry.key === 'string' ? entry.key === key : entry.key[dimension ?? ''] === key
}
