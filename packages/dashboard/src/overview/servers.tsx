// The service's instances and the store's servers.

import type {
  InstanceStatus,
  Overview,
  RedisServerStatus,
  StoreStatus,
} from '../../../server/src/admin/api-types.ts'
import { Badge } from '../components/status.tsx'
import { type Column, Table } from '../components/table.tsx'
import { bytes, count, dateTime, decimal, duration, NONE, rate, share } from '../format.ts'

export function Servers({ overview: { instances, store } }: { readonly overview: Overview }) {
  return (
    <div class="columns uneven">
      <section class="panel" aria-labelledby="instances">
        <h2 id="instances">Instances</h2>
        <Table label="Instances" columns={INSTANCES} rows={instances} keyOf={({ id }) => id} />
      </section>
      <section class="panel" aria-labelledby="store">
        <div class="panel-head">
          <h2 id="store">Store</h2>
          <StoreState store={store} />
        </div>
        {store.kind === 'redis' && (
          <Table
            label="Store servers"
            columns={SERVERS}
            rows={store.servers}
            keyOf={({ node }) => node}
            empty="No server responded."
          />
        )}
      </section>
    </div>
  )
}

function StoreState({ store }: { readonly store: StoreStatus }) {
  const { kind, up, callsPerSecond, requestsPerCall } = store
  return (
    <span class="muted">
      {kind === 'memory' ? 'In this process ' : 'Redis '}
      <Badge tone={up ? 'good' : 'bad'}>{up ? 'up' : 'down'}</Badge>
      {kind === 'redis' && ` ${rate(callsPerSecond)} calls`}
      {requestsPerCall !== null && `, ${decimal(requestsPerCall)} requests each`}
    </span>
  )
}

const INSTANCES: readonly Column<InstanceStatus>[] = [
  {
    id: 'host',
    label: 'Process',
    cell: ({ host, pid, isSelf }) => (
      <>
        {host}/{pid} {isSelf && <Badge>this one</Badge>}
      </>
    ),
  },
  { id: 'version', label: 'Version', cell: ({ version }) => version },
  { id: 'started', label: 'Since', cell: ({ startedAtMs }) => dateTime(startedAtMs) },
]

const SERVERS: readonly Column<RedisServerStatus>[] = [
  {
    id: 'node',
    label: 'Server',
    cell: ({ node, up, version, role }) => (
      <>
        {node} {!up && <Badge tone="bad">down</Badge>}
        <div class="muted">{[role, version].filter(Boolean).join(' ')}</div>
      </>
    ),
  },
  { id: 'memory', label: 'Memory', cell: memoryIn, isNumber: true },
  { id: 'ops', label: 'Commands', cell: ({ commandsPerSecond }) => rate(commandsPerSecond), isNumber: true },
  {
    id: 'script',
    label: 'Script',
    cell: ({ scriptMicros }) => duration(scriptMicros === undefined ? null : scriptMicros / 1000),
    isNumber: true,
  },
  { id: 'evicted', label: 'Evicted', cell: evictedIn, isNumber: true },
  {
    id: 'lag',
    label: 'Replica lag',
    cell: ({ replicaLagBytes }) => bytes(replicaLagBytes),
    isNumber: true,
    isMinor: true,
  },
  {
    id: 'clients',
    label: 'Clients',
    cell: ({ connectedClients }) => count(connectedClients),
    isNumber: true,
    isMinor: true,
  },
]

function memoryIn({ usedMemoryBytes, maxMemoryBytes }: RedisServerStatus) {
  if (usedMemoryBytes === undefined) return NONE
  if (!maxMemoryBytes) return `${bytes(usedMemoryBytes)}, no limit`
  const isNearlyFull = usedMemoryBytes > 0.9 * maxMemoryBytes
  return (
    <span class={isNearlyFull ? 'denied' : undefined}>
      {bytes(usedMemoryBytes)} of {bytes(maxMemoryBytes)} ({share(usedMemoryBytes / maxMemoryBytes)})
    </span>
  )
}

/** Evicted keys lose their counts, so limits admit too much. */
function evictedIn({ evictedKeys }: RedisServerStatus) {
  if (!evictedKeys) return count(evictedKeys)
  return <span class="denied">{count(evictedKeys)}</span>
}
