// Metrics for Redis servers, from redis-health.ts.

import { counter, gauge, type Metric, type Row } from './metric.ts'
import type { ServerHealth } from './redis-health.ts'

/** Metrics for each Redis server. All processes see the same servers, so values aren't summed. */
export function redisMetrics(servers: readonly ServerHealth[]): Metric[] {
  const each = (value: (server: ServerHealth) => number | undefined): Row<number>[] =>
    servers.flatMap((server) => {
      const found = value(server)
      return found === undefined ? [] : [[{ node: server.node }, found] as const]
    })
  const infoField = (name: string) => each(({ info }) => info?.number(name))
  return [
    gauge(
      'slidegate_redis_up',
      '1 if the server responds.',
      each(({ up }) => (up ? 1 : 0)),
      'max',
    ),
    gauge('slidegate_redis_memory_used_bytes', 'Memory in use.', infoField('used_memory'), 'max'),
    gauge('slidegate_redis_memory_max_bytes', 'maxmemory; 0 means no limit.', infoField('maxmemory'), 'max'),
    counter(
      'slidegate_redis_commands_total',
      'Commands from all clients.',
      infoField('total_commands_processed'),
      'max',
    ),
    counter(
      'slidegate_redis_cpu_seconds_total',
      'CPU time.',
      each(({ info }) => info?.cpuSeconds),
      'max',
    ),
    counter(
      'slidegate_redis_network_received_bytes_total',
      'Bytes received from all clients.',
      infoField('total_net_input_bytes'),
      'max',
    ),
    counter(
      'slidegate_redis_network_sent_bytes_total',
      'Bytes sent to all clients.',
      infoField('total_net_output_bytes'),
      'max',
    ),
    counter(
      'slidegate_redis_evicted_keys_total',
      'Keys evicted for lack of memory. Each may have reset a limit.',
      infoField('evicted_keys'),
      'max',
    ),
    gauge('slidegate_redis_connected_clients', 'Connections.', infoField('connected_clients'), 'max'),
    gauge(
      'slidegate_redis_replica_lag_bytes',
      'Lag of the slowest replica.',
      each(({ info }) => info?.replicaLagBytes),
      'max',
    ),
    counter(
      'slidegate_redis_script_calls_total',
      'Script calls.',
      each(({ info }) => info?.scripts?.calls),
      'max',
    ),
    counter(
      'slidegate_redis_script_seconds_total',
      'Time spent in scripts.',
      each(({ info }) => info?.scripts?.seconds),
      'max',
    ),
    counter(
      'slidegate_redis_slow_scripts_total',
      "Slow log entries for slidegate's script, since this service began to read the slow log.",
      each(({ slowScripts }) => slowScripts),
      'max',
    ),
  ]
}
