// The service's instances and the store's servers.

import type {
  GoneInstance,
  InstanceStatus,
  Overview,
  RedisServerStatus,
  StoreStatus,
} from '../../../server/src/admin/api-types.ts'
import { Badge } from '../components/status.tsx'
import { type Column, Table } from '../components/table.tsx'
import { bytes, count, dateTime, decimal, duration, NONE, rate, share, timeOfDay } from '../format.ts'
import { RunbookLink } from '../runbook/runbook-link.tsx'

export function Servers({ overview: { instances, gone, store } }: { readonly overview: Overview }) {
  return (
    <div class="columns uneven">
      <section class="panel" aria-labelledby="instances">
        <h2 id="instances">Instances</h2>
        <Table label="Instances" columns={INSTANCES} rows={[...instances, ...gone]} keyOf={({ id }) => id} />
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
      {requestsPerCall !== null &&
        `, ${decimal(requestsPerCall)} ${requestsPerCall === 1 ? 'request' : 'requests'} each`}
    </span>
  )
}

type Instance = InstanceStatus | GoneInstance

const INSTANCES: readonly Column<Instance>[] = [
  {
    id: 'host',
    label: 'Process',
    cell: (instance) => (
      <>
        {instance.host}/{instance.pid} {'isSelf' in instance && instance.isSelf && <Badge>this one</Badge>}
        {'goneSinceMs' in instance && <Gone instance={instance} />}
      </>
    ),
  },
  {
    id: 'requests',
    label: 'Requests',
    cell: (instance) => ('perSecond' in instance ? rate(instance.perSecond) : NONE),
    isNumber: true,
  },
  { id: 'version', label: 'Version', cell: ({ version }) => version },
  { id: 'started', label: 'Since', cell: ({ startedAtMs }) => dateTime(startedAtMs) },
]

/** An instance that disappeared without shutting down properly. */
function Gone({ instance: { goneSinceMs, lastPerSecond } }: { readonly instance: GoneInstance }) {
  return (
    <div>
      <Badge tone="bad">gone</Badge> since{' '}
      <time dateTime={new Date(goneSinceMs).toISOString()}>{timeOfDay(goneSinceMs)}</time>,{' '}
      {rate(lastPerSecond)} before that. <RunbookLink alert="SlidegateInstanceDown" />
    </div>
  )
}

const SERVERS: readonly Column<RedisServerStatus>[] = [
  {
    id: 'node',
    label: 'Server',
    cell: ({ node, up, version, role }) => (
      <>
        {node} {!up && <Badge tone="bad">down</Badge>} {!up && <RunbookLink alert="SlidegateRedisDown" />}
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
  {
    id: 'network',
    label: 'Network in / out',
    cell: ({ receivedBytesPerSecond, sentBytesPerSecond }) =>
      receivedBytesPerSecond === undefined
        ? NONE
        : `${bytes(receivedBytesPerSecond)} / ${bytes(sentBytesPerSecond)} per s`,
    isNumber: true,
    isMinor: true,
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
      {bytes(usedMemoryBytes)} of {bytes(maxMemoryBytes)} ({share(usedMemoryBytes / maxMemoryBytes)}){' '}
      {isNearlyFull && <RunbookLink alert="SlidegateRedisMemoryHigh" />}
    </span>
  )
}

/** When Redis evicts keys, their counts are lost, and limits admit too many requests. */
function evictedIn({ evictedKeys }: RedisServerStatus) {
  if (!evictedKeys) return count(evictedKeys)
  return (
    <span class="denied">
      {count(evictedKeys)} <RunbookLink alert="SlidegateRedisEvictions" />
    </span>
  )
}
